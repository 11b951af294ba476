// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Queues, peers, and the transfers and messages between them. One lock is enough: GPI-2's TCP
// device is one thread per process, and its work for an operation takes longer than the work under
// the lock.
//
// The device thread writes the header of each operation without reading incoming data. Two of them
// that write to each other with full sockets would deadlock. The bytes outstanding to a peer
// therefore stay below the capacity of sockets, except for large operations, whose bodies GPI-2
// writes without this hazard.
#pragma once

#include "launch/launch.h"
#include "transport/gaspi/peer.h"
#include "transport/types.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace diomp::transport::gaspi {

/// Limit of the bytes outstanding to a peer in operations below `large_bytes`: sockets hold more.
constexpr std::uint64_t window_bytes = std::uint64_t{128} << 10;
constexpr std::size_t large_bytes = std::size_t{64} << 10;
/// Larger operations are cut, so that a peer that receives one shows signs of life.
constexpr std::size_t chunk_bytes = std::size_t{16} << 20;

/// Any thread, unless stated otherwise.
class iface {
public:
    using peer_lost_callback = std::function<void(peer &lost, const std::string &why)>;

    /// Collective. `on_peer_lost` is called for each lost connection, by any thread.
    static result<std::unique_ptr<iface>> create(launch::launcher &launcher, const arena &arena,
                                                 peer_lost_callback on_peer_lost);
    iface(const iface &) = delete;
    iface &operator=(const iface &) = delete;

    /// Contracts: conduit.h.
    status put(world_rank rank, std::uint64_t remote, const void *source, std::size_t nbytes,
               completion &source_free);
    status get(world_rank rank, std::uint64_t remote, void *destination, std::size_t nbytes,
               completion &done);
    status flush(world_rank rank, completion &done) { return flush(peer_of(rank), done, false); }
    status flush_all(completion &done, bool also_messages = false);
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload);
    result<bool> put_with_message(world_rank rank, std::uint64_t remote,
                                  std::span<const std::byte> source, handler_id handler,
                                  std::span<const std::byte> payload, completion &source_free);
    [[nodiscard]] std::size_t max_message_bytes() const;
    [[nodiscard]] bool has_messages() const;
    /// Hands messages to the handler. Returns their number; 0 if another thread is receiving.
    int receive(message_handler sink);

    /// Makes progress, unless another thread does. True if something progressed.
    bool advance();
    [[nodiscard]] std::string describe_outstanding() const;
    [[nodiscard]] std::string describe_path(world_rank rank) const;
    [[nodiscard]] std::span<const std::unique_ptr<peer>> peers() const { return peers_; }
    /// See network_peer::fail.
    std::string fail(peer &lost, const std::string &why);
    /// Requests a sign of life from the peer.
    void ping(peer &silent);

private:
    iface() = default;
    using outcome = gaspi_queue::outcome;
    /// Up to this many ranks, polling all rings costs less than a notification.
    static constexpr std::size_t max_polled_rings = 64;
    [[nodiscard]] bool polls_rings() const { return peers_.size() <= max_polled_rings; }
    static constexpr std::size_t max_queued_writes = 6; ///< entries of a queue; a message takes two

    [[nodiscard]] peer &peer_of(world_rank rank) const { return *peers_[rank.index()]; }
    status flush(peer &to, completion &done, bool also_messages);
    template <typename Attempt>
    status retry_until_started(peer &at, Attempt &&attempt);
    void queue_credit(peer &from);

    // Under mutex_:
    gaspi_queue *queue_for(peer &at, queue_kind kind);
    outcome check_outcome(peer &at, outcome tried);
    outcome start_put(peer &to, std::uint64_t offset, const std::byte *source, std::size_t nbytes,
                      completion &source_free);
    outcome start_get(peer &from, std::uint64_t offset, std::byte *destination, std::size_t nbytes,
                      completion &done);
    bool defer_put(peer &to, std::uint64_t offset, std::span<const std::byte> bytes);
    void defer(peer &to, deferred what);
    bool start_deferred(peer &to);
    void attach_to_marker(peer &to, marker_kind kind, completion &done);
    void list_unflushed(peer &to);
    outcome start_marker(peer &at, marker_kind kind);
    bool transmit(peer &to, std::size_t max_outstanding = max_queued_writes);
    bool transmit_pending();
    void list_untransmitted(peer &to);
    [[nodiscard]] gaspi_queue *message_queue_for_data(peer &to);
    void append_record(peer &to, record head, std::span<const std::byte> payload);
    void append_message(peer &to, handler_id handler, std::span<const std::byte> payload);
    [[nodiscard]] bool has_space_for(peer &to, std::size_t payload_bytes);
    [[nodiscard]] bool make_space(peer &to, std::size_t wanted);
    void read_credit(peer &to) const;
    bool progress_queue(gaspi_queue &at);
    void complete_operation(peer &at, const operation &over, int code);
    bool complete_markers(peer &at, marker_kind kind);
    bool send_credits();
    void unlist_if_flushed(peer &at);
    void fail_operations(peer &lost);

    // Receiving messages, under receiving_:
    int receive_from(peer &from, message_handler sink);
    [[nodiscard]] peer *next_sender();
    [[nodiscard]] std::byte *next_record_of(const peer &from) const;
    /// Whether the next record has arrived; sets `head` in that case.
    [[nodiscard]] bool find_record(const peer &from, record &head) const;
    [[nodiscard]] std::size_t bytes_left_at(std::uint32_t position) const {
        return (num_units() - position % num_units()) * message_unit;
    }
    [[nodiscard]] std::uint32_t num_units() const {
        return static_cast<std::uint32_t>(memory_->ring_bytes() / message_unit);
    }

    world_rank self_{0};
    peer_lost_callback on_peer_lost_;
    std::unique_ptr<memory> memory_;
    std::vector<std::unique_ptr<peer>> peers_; ///< [world rank]
    mutable std::mutex mutex_;
    std::deque<gaspi_queue> queues_;
    std::vector<peer *> unflushed_; ///< with puts that no marker has confirmed
    std::atomic<int> num_unflushed_{0};
    std::vector<peer *> waiting_;       ///< with deferred operations
    std::vector<peer *> marked_;        ///< with outstanding markers
    std::vector<peer *> untransmitted_; ///< with messages not posted to GPI-2
    std::vector<peer *> credits_due_;
    std::vector<peer *> broken_; ///< to be declared failed after the lock is released
    std::atomic_flag receiving_;
    std::atomic<std::thread::id> receiver_; ///< the thread that runs handlers
    std::uint32_t next_sender_ = 0;
};

} // namespace diomp::transport::gaspi
