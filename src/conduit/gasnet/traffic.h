// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Active messages of GASNet-EX, both ways: what they carry, how they are answered, and what they
// change here.
//
// A put is a medium message whose handler copies the data, a get is a short one that is answered
// with mediums: so do GASNet's own puts and gets on conduits without remote direct memory access.
// Those with it: rdma.h.
#pragma once

#include "conduit/gasnet/peer.h"
#include "conduit/message_queue.h"
#include "launch/gasnet/client.h"

#include <chrono>

namespace diomp::conduit::gasnet {

/// At the launcher: where a rank is, and what of its memory GASNet's own puts and gets reach.
inline constexpr const char *host_key = "gasnet.host";
inline constexpr const char *bound_key = "gasnet.bound";

class traffic {
public:
    /// Registers the handlers; one object per process. Nobody may send before all have done so.
    traffic(const launch::gasnet::client &job, launch::launcher &launcher, arrivals &arrived);
    ~traffic();
    traffic(const traffic &) = delete;
    traffic &operator=(const traffic &) = delete;

    /// Made on first use. Any thread.
    [[nodiscard]] peer &peer_of(world_rank rank);
    [[nodiscard]] peer *find_peer(world_rank rank) const { return peers_.find(rank); }
    [[nodiscard]] std::span<const std::unique_ptr<peer>> spoken_to() const { return peers_.all(); }

    // Sending. Any thread, without locks; may run handlers. What is sent to a peer that has failed
    // is lost.
    void put(peer &to, std::uint64_t address, const std::byte *source, std::size_t nbytes,
             completion &source_free);
    void get(peer &from, std::uint64_t address, void *destination, std::size_t nbytes,
             completion &done);
    bool try_send(peer &to, handler_id handler, std::span<const std::byte> payload);
    bool send_bulk(peer &to, handler_id handler, std::span<const std::byte> payload,
                   std::span<const std::byte> data);
    void give_credit(peer &to);
    void ping(peer &to);
    /// Has a peer whose processor serves GASNet's own puts and gets look for them for some
    /// milliseconds from now on. Cheap if that was said less than a millisecond ago.
    void attend(peer &to);
    static constexpr std::chrono::milliseconds ask_again_after{1};

    /// Lets GASNet work, and sends what waits. True if anything has come.
    bool advance();
    /// A peer has asked for that: who polls shall go on, though nothing comes that it could see.
    [[nodiscard]] bool is_attending();
    [[nodiscard]] std::size_t max_message_bytes() const { return max_message_bytes_; }
    [[nodiscard]] static std::size_t max_bulk_bytes();

    // For handlers.
    peer &heard(world_rank source);
    void queue(world_rank source, handler_id handler, std::uint32_t number, const void *payload,
               std::size_t nbytes);
    [[nodiscard]] arrivals &arrived() { return arrived_; }
    void begin_attending();

private:
    bool send_piece_of_put(peer &to, waiting_transfer &put);
    bool send_piece_of_get(peer &from, waiting_transfer &get);
    bool send_piece(peer &to, waiting_transfer &transfer) {
        return transfer.source != nullptr ? send_piece_of_put(to, transfer)
                                          : send_piece_of_get(to, transfer);
    }
    /// Waits for a slot, making progress; false if the peer has failed.
    bool await_slot(peer &to);
    void ship_backlogs();

    const launch::gasnet::client &job_;
    launch::launcher &launcher_;
    std::size_t max_message_bytes_;
    /// Requests to one peer that may wait for answers: fewer than GASNet lets there be, so that it
    /// never blocks.
    std::uint32_t num_slots_;
    std::atomic<bool> any_backlog_{false};
    peer_table<peer> peers_;
    std::atomic<std::uint64_t> num_arrived_{0};
    std::atomic<std::int64_t> attends_until_{0}; ///< nanoseconds of the steady clock; 0: does not
    arrivals &arrived_;
};

} // namespace diomp::conduit::gasnet
