// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Active messages of GASNet-EX in both directions: their content, their replies and their effects.
//
// A put is an AM Medium whose handler copies the data. A get is an AM Short that is answered with
// AM Mediums. GASNet's own puts and gets do likewise on conduits without RDMA. Puts and gets by
// RDMA: rdma.h.
#pragma once

#include "launch/gasnet/client.h"
#include "transport/common/message_queue.h"
#include "transport/gasnet/peer.h"

#include <chrono>

namespace diomp::transport::gasnet {

/// Keys of the launcher's store: a rank's host, and the memory that GASNet's puts and gets access.
inline constexpr const char *host_key = "gasnet.host";
inline constexpr const char *bound_key = "gasnet.bound";

class iface {
public:
    /// Registers the handlers; one object per process. Sends must wait until all ranks have done
    /// so.
    iface(const launch::gasnet::gasnet_client &job, launch::launcher &launcher, arrivals &arrived);
    ~iface();
    iface(const iface &) = delete;
    iface &operator=(const iface &) = delete;

    /// The peer, created on first use. Any thread.
    [[nodiscard]] peer &peer_of(world_rank rank);
    [[nodiscard]] peer *find_peer(world_rank rank) const { return peers_.find(rank); }
    [[nodiscard]] std::span<const std::unique_ptr<peer>> peers_in_use() const {
        return peers_.all();
    }

    // Sending. Any thread, without locks held; may run handlers. Messages to a failed peer are
    // dropped.
    void put(peer &to, std::uint64_t address, const std::byte *source, std::size_t nbytes,
             completion &source_free);
    void get(peer &from, std::uint64_t address, void *destination, std::size_t nbytes,
             completion &done);
    bool try_send(peer &to, handler_id handler, std::span<const std::byte> payload);
    bool send_long(peer &to, handler_id handler, std::span<const std::byte> payload,
                   std::span<const std::byte> data);
    void give_credit(peer &to);
    void ping(peer &to);
    /// Requests that a peer whose processor serves GASNet's own puts and gets polls for the next
    /// milliseconds. Cheap if requested less than a millisecond ago.
    void request_polling(peer &to);
    static constexpr std::chrono::milliseconds polling_request_interval{1};

    /// Polls GASNet and sends the backlog. True if anything has arrived.
    bool advance();
    /// Whether a peer has requested polling: pollers go on although no message arrives.
    [[nodiscard]] bool is_polling_requested();
    [[nodiscard]] std::size_t max_message_bytes() const { return max_message_bytes_; }
    [[nodiscard]] static std::size_t max_long_bytes();

    // Called by handlers.
    peer &note_arrival(world_rank source);
    void queue(world_rank source, handler_id handler, std::uint32_t number, const void *payload,
               std::size_t nbytes);
    [[nodiscard]] arrivals &arrived() { return arrived_; }
    void keep_polling();

private:
    bool send_put_chunk(peer &to, pending_transfer &put);
    bool send_get_chunk(peer &from, pending_transfer &get);
    bool send_chunk(peer &to, pending_transfer &transfer) {
        return transfer.source != nullptr ? send_put_chunk(to, transfer)
                                          : send_get_chunk(to, transfer);
    }
    /// Waits for a slot and makes progress meanwhile; false if the peer has failed.
    bool wait_for_slot(peer &to);
    void transmit_backlogs();

    const launch::gasnet::gasnet_client &job_;
    launch::launcher &launcher_;
    std::size_t max_message_bytes_;
    /// Limit of unanswered requests to one peer: fewer than GASNet allows, so that it never blocks.
    std::uint32_t num_slots_;
    std::atomic<bool> any_backlog_{false};
    peer_table<peer> peers_;
    std::atomic<std::uint64_t> num_arrived_{0};
    std::atomic<std::int64_t> poll_until_{0}; ///< nanoseconds of the steady clock; 0: no request
    arrivals &arrived_;
};

} // namespace diomp::transport::gasnet
