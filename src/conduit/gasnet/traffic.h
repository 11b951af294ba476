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

namespace diomp::conduit::gasnet {

/// At the launcher: where a rank is, and "1" if GASNet's own puts and gets reach its slot.
inline constexpr const char *host_key = "gasnet.host";
inline constexpr const char *segment_key = "gasnet.segment";

/// The queue of a rank holds this much of each other one.
inline constexpr std::uint64_t message_window_bytes = 256 * 1024;
/// What a message takes of it.
constexpr std::uint64_t message_cost(std::size_t payload_bytes) { return payload_bytes + 16; }

class traffic {
public:
    /// Registers the handlers; one object per process. Nobody may send before all have done so.
    traffic(const launch::gasnet::client &job, const launch::job_info &info,
            launch::launcher &launcher);
    ~traffic();
    traffic(const traffic &) = delete;
    traffic &operator=(const traffic &) = delete;

    /// Made on first use. Any thread.
    [[nodiscard]] peer &peer_of(world_rank rank);
    [[nodiscard]] peer *find_peer(world_rank rank) const {
        return peers_[rank.index()].load(std::memory_order_acquire);
    }
    [[nodiscard]] std::span<const std::unique_ptr<peer>> spoken_to() const {
        return {made_.data(), num_made_.load(std::memory_order_acquire)};
    }

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

    /// Lets GASNet work, and sends what waits. True if anything has come.
    bool advance();
    [[nodiscard]] bool has_messages() const { return queue_.has_messages(); }
    void swap_messages(std::vector<std::byte> &other);
    /// A bulk message has been handled since the last call.
    bool take_bulk_news() { return bulk_news_.exchange(false, std::memory_order_relaxed); }
    void receive_bulk_with(const bulk_sink &sink);

    [[nodiscard]] std::size_t max_message_bytes() const { return max_message_bytes_; }
    [[nodiscard]] static std::size_t max_bulk_bytes();

    // For handlers.
    peer &heard(world_rank source);
    void queue(world_rank source, handler_id handler, std::uint32_t number, const void *payload,
               std::size_t nbytes);
    void take_bulk(world_rank source, handler_id handler, const std::byte *payload,
                   std::size_t payload_bytes, std::span<const std::byte> data);

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
    std::vector<std::atomic<peer *>> peers_;  ///< by rank
    std::mutex peers_mutex_;                  ///< of who makes one
    std::vector<std::unique_ptr<peer>> made_; ///< first num_made_ ones; never moves
    std::atomic<std::size_t> num_made_{0};
    std::atomic<std::uint64_t> num_arrived_{0};
    std::mutex arrivals_mutex_;
    message_queue queue_;
    bulk_sink bulk_sink_;
    std::atomic<bool> bulk_news_{false};
};

} // namespace diomp::conduit::gasnet
