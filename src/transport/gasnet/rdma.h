// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GASNet-EX's own puts and gets. Its first endpoint accepts only a segment that GASNet has
// allocated; further endpoints, which its ibv, ofi and ucx conduits have, accept any memory: here,
// the rank's slot.
//
// Without an RDMA adapter the target's processor serves these operations, inside GASNet, which does
// not report them to the target. The initiator therefore requests from time to time that the target
// keeps polling (iface::request_polling).
#pragma once

#include "launch/gasnet/client.h"
#include "transport/arena.h"
#include "transport/gasnet/iface.h"
#include "transport/options.h"

namespace diomp::transport::gasnet {

/// Whether GASNet's network moves data without the target's processor.
[[nodiscard]] bool has_one_sided_rdma();

class rdma {
public:
    enum class protocol : std::uint8_t {
        none,
        one_sided,          ///< without the target's processor
        target_served,      ///< by the target's processor
        target_served_gets, ///< gets by the target's processor, puts not used
    };

    /// Collective. nullptr where GASNet's conduit has no further endpoints. `wish` (auto, rdma or
    /// messages; equal on all ranks) decides whether the slot is bound.
    static result<std::unique_ptr<rdma>> create(const launch::gasnet::gasnet_client &job,
                                                const launch::job_info &info, const arena &arena,
                                                const std::string &wish, iface &messages);

    /// This rank's slot; 0 bytes: accessed by messages only.
    [[nodiscard]] const bound_range &slot() const { return slot_; }
    [[nodiscard]] bool has_slot() const { return slot_.range.nbytes > 0; }

    // Any thread, without locks held; may run handlers. Block while GASNet accepts no operation.
    void put(peer &to, std::uint64_t address, const void *source, std::size_t nbytes,
             completion &source_free);
    void get(peer &from, std::uint64_t address, void *destination, std::size_t nbytes,
             completion &done) {
        get_via(endpoint_pair_, from, address, destination, nbytes, done);
    }

    /// Whether puts use this protocol; otherwise messages are faster.
    [[nodiscard]] bool supports_puts() const { return protocol_ != protocol::target_served_gets; }

    /// Transfers between two endpoints. The source must stay valid until `source_free` is done.
    void put_via(gex_TM_t endpoint_pair, peer &to, std::uint64_t address, const void *source,
                 std::size_t nbytes, completion &source_free);
    void get_via(gex_TM_t endpoint_pair, peer &from, std::uint64_t address, void *destination,
                 std::size_t nbytes, completion &done);

    /// All rows in one operation of GASNet, for which the target may have to poll.
    void put_rows(peer &to, std::uint64_t address, const void *source, const rows &shape,
                  completion &source_free);
    void get_rows(peer &from, std::uint64_t address, void *destination, const rows &shape,
                  completion &done);
    [[nodiscard]] static bool supports(const rows &shape);

    /// Completes operations that have ended. Does not poll GASNet. True if any ended.
    bool advance();
    [[nodiscard]] bool is_busy() const {
        return num_outstanding_.load(std::memory_order_relaxed) > 0;
    }
    [[nodiscard]] const char *description() const;
    /// Whether operations are outstanding whose completion arrives without a message.
    [[nodiscard]] bool is_quiet() const { return protocol_ == protocol::one_sided && is_busy(); }

private:
    struct operation {
        peer *target;
        epoch *put;              ///< nullptr: a get
        completion *source_free; ///< for a large put
        get_id get;
    };

    rdma(iface &messages, protocol chosen) : messages_(messages), protocol_(chosen) {}
    static status bind_slot(const launch::gasnet::gasnet_client &job, gex_EP_t endpoint,
                            std::byte *slot, std::size_t nbytes);
    void start(gex_Event_t event, const operation &started);
    static void finish(const operation &over);
    void keep_targets_awake(); ///< under mutex_

    iface &messages_;
    protocol protocol_;
    bound_range slot_;
    gex_TM_t endpoint_pair_{}; ///< from this rank's second endpoint to those of all ranks
    std::mutex mutex_;         ///< not taken by handlers
    std::vector<gex_Event_t> events_;
    std::vector<operation> operations_; ///< [index of events_]
    std::chrono::steady_clock::time_point remind_at_;
    std::atomic<std::size_t> num_outstanding_{0};
};

} // namespace diomp::transport::gasnet
