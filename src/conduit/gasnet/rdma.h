// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GASNet-EX's own puts and gets. Its first endpoint takes only a segment that GASNet has allocated;
// further ones, which its ibv, ofi and ucx conduits have, take any memory: here, the rank's slot.
//
// Without an adapter that moves data alone the target's processor serves them, inside GASNet, which
// does not tell the target of it. So whoever asks tells the target now and then to stay awake
// (traffic::attend).
#pragma once

#include "conduit/conduit.h"
#include "conduit/gasnet/traffic.h"
#include "launch/gasnet/client.h"

namespace diomp::conduit::gasnet {

/// What GASNet drives moves data without the target's processor.
[[nodiscard]] bool moves_alone();

class rdma {
public:
    enum class manner : std::uint8_t {
        not_at_all,
        alone,       ///< without the target's processor
        served,      ///< with it
        served_gets, ///< gets with it, puts not at all
    };

    /// Collective. nullptr where GASNet's conduit has no further endpoints. Whether the slot is
    /// bound follows from `wish`: auto, rdma, messages; alike on all ranks.
    static result<std::unique_ptr<rdma>> create(const launch::gasnet::client &job,
                                                const launch::job_info &info, const window &window,
                                                const std::string &wish, traffic &messages);

    /// This rank's slot; no bytes: it is reached by messages only.
    [[nodiscard]] const bound_range &slot() const { return slot_; }
    [[nodiscard]] bool has_slot() const { return slot_.range.nbytes > 0; }

    // Any thread, without locks; may run handlers. They wait while GASNet has no room.
    void put(peer &to, std::uint64_t address, const void *source, std::size_t nbytes,
             completion &source_free);
    void get(peer &from, std::uint64_t address, void *destination, std::size_t nbytes,
             completion &done) {
        get_through(way_, from, address, destination, nbytes, done);
    }

    /// Whether puts go so; else messages are quicker.
    [[nodiscard]] bool takes_puts() const { return manner_ != manner::served_gets; }

    /// Between any two endpoints. The source stays until `source_free`.
    void put_through(gex_TM_t way, peer &to, std::uint64_t address, const void *source,
                     std::size_t nbytes, completion &source_free);
    void get_through(gex_TM_t way, peer &from, std::uint64_t address, void *destination,
                     std::size_t nbytes, completion &done);

    /// All rows in one operation of GASNet's, for which the target may have to poll.
    void put_rows(peer &to, std::uint64_t address, const void *source, const rows &shape,
                  completion &source_free);
    void get_rows(peer &from, std::uint64_t address, void *destination, const rows &shape,
                  completion &done);
    [[nodiscard]] static bool takes(const rows &shape);

    /// Tells who waits for what is over; GASNet works when it is polled. True if anything was.
    bool advance();
    [[nodiscard]] bool is_busy() const {
        return num_under_way_.load(std::memory_order_relaxed) > 0;
    }
    [[nodiscard]] const char *description() const;
    /// Something is under way that nobody answers.
    [[nodiscard]] bool is_quiet() const { return manner_ == manner::alone && is_busy(); }

private:
    struct operation {
        peer *target;
        epoch *put;              ///< nullptr: a get
        completion *source_free; ///< of a large put
        get_id get;
    };

    rdma(traffic &messages, manner how) : messages_(messages), manner_(how) {}
    static status bind_slot(const launch::gasnet::client &job, gex_EP_t endpoint, std::byte *slot,
                            std::size_t nbytes);
    void start(gex_Event_t event, const operation &started);
    static void finish(const operation &over);
    void keep_targets_awake(); ///< under mutex_

    traffic &messages_;
    manner manner_;
    bound_range slot_;
    gex_TM_t way_{};   ///< from our second endpoint to everybody's
    std::mutex mutex_; ///< no handler takes it
    std::vector<gex_Event_t> events_;
    std::vector<operation> operations_; ///< of the events
    std::chrono::steady_clock::time_point remind_at_;
    std::atomic<std::size_t> num_under_way_{0};
};

} // namespace diomp::conduit::gasnet
