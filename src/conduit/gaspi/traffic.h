// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lanes, peers, and what moves between them. One lock: GPI-2's TCP device is one thread per
// process, and what it does for an operation takes longer than what happens under the lock.
//
// A device thread writes the head of each operation without looking at what comes in, so two that
// write to each other with full sockets would wait for each other for ever. Therefore what is
// under way to a peer stays below what sockets hold, except for large operations, whose bodies
// GPI-2 writes with care.
#pragma once

#include "conduit/conduit.h"
#include "conduit/gaspi/peer.h"
#include "launch/launch.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace diomp::conduit::gaspi {

/// What is under way to a peer in operations below `large_bytes`: less than sockets hold.
constexpr std::uint64_t window_bytes = std::uint64_t{128} << 10;
constexpr std::size_t large_bytes = std::size_t{64} << 10;
/// Larger ones are cut: a peer that takes them shows life now and then.
constexpr std::size_t piece_bytes = std::size_t{16} << 20;

/// Any thread, unless said otherwise.
class traffic {
public:
    using loss_sink = std::function<void(peer &lost, const std::string &why)>;

    /// Collective. `lose` is told of connections that are lost, by any thread.
    static result<std::unique_ptr<traffic>> create(launch::launcher &launcher, const window &window,
                                                   loss_sink lose);
    traffic(const traffic &) = delete;
    traffic &operator=(const traffic &) = delete;

    /// As in conduit.h.
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
    /// 0 if another thread is doing it.
    int receive(message_sink sink);

    /// Progress, unless another thread is making it. True if something moved.
    bool advance();
    [[nodiscard]] std::string describe_outstanding() const;
    [[nodiscard]] std::string describe_path(world_rank rank) const;
    [[nodiscard]] std::span<const std::unique_ptr<peer>> peers() const { return peers_; }
    /// As network_peer::fail.
    std::string fail(peer &lost, const std::string &why);
    /// Asks for a sign of life.
    void ping(peer &silent);

private:
    traffic() = default;
    using outcome = lane::outcome;
    /// Up to so many ranks a look at all rings costs less than a notification.
    static constexpr std::size_t most_looked_at = 64;
    [[nodiscard]] bool looks_for_messages() const { return peers_.size() <= most_looked_at; }
    static constexpr std::size_t few_writes = 6; ///< entries of a lane, two for each message

    [[nodiscard]] peer &peer_of(world_rank rank) const { return *peers_[rank.index()]; }
    status flush(peer &to, completion &done, bool also_messages);
    template <typename Attempt>
    status insist(peer &at, Attempt &&attempt);
    void credit(peer &from);

    // Under mutex_:
    lane *lane_of(peer &at, lane_kind kind);
    outcome note(peer &at, outcome tried);
    outcome start_put(peer &to, std::uint64_t offset, const std::byte *source, std::size_t nbytes,
                      completion &source_free);
    outcome start_get(peer &from, std::uint64_t offset, std::byte *destination, std::size_t nbytes,
                      completion &done);
    bool defer_put(peer &to, std::uint64_t offset, std::span<const std::byte> bytes);
    void defer(peer &to, deferred what);
    bool start_waiting(peer &to);
    void join_marker(peer &to, marker_kind kind, completion &done);
    void list_unsettled(peer &to);
    outcome start_marker(peer &at, marker_kind kind);
    bool ship(peer &to, std::size_t most_under_way = few_writes);
    bool ship_waiting();
    void list_unshipped(peer &to);
    [[nodiscard]] lane *message_lane_for_data(peer &to);
    void append_record(peer &to, record head, std::span<const std::byte> payload);
    void append_message(peer &to, handler_id handler, std::span<const std::byte> payload);
    [[nodiscard]] bool has_room_for(peer &to, std::size_t payload_bytes);
    [[nodiscard]] bool make_room(peer &to, std::size_t wanted);
    void learn_credit(peer &to) const;
    bool finish(lane &at);
    void end_operation(peer &at, const operation &over, int code);
    bool land_markers(peer &at, marker_kind kind);
    bool pay_credits();
    void settle(peer &at);
    void end_everything(peer &lost);

    // Of messages, under receiving_:
    int receive_from(peer &from, message_sink sink);
    [[nodiscard]] peer *next_sender();
    [[nodiscard]] std::byte *next_record_of(const peer &from) const;
    /// Whether the next one has arrived; then `head` is it.
    [[nodiscard]] bool find_record(const peer &from, record &head) const;
    [[nodiscard]] std::size_t bytes_left_at(std::uint32_t position) const {
        return (num_units() - position % num_units()) * message_unit;
    }
    [[nodiscard]] std::uint32_t num_units() const {
        return static_cast<std::uint32_t>(memory_->ring_bytes() / message_unit);
    }

    world_rank self_{0};
    loss_sink lose_;
    std::unique_ptr<memory> memory_;
    std::vector<std::unique_ptr<peer>> peers_; ///< [world rank]
    mutable std::mutex mutex_;
    std::deque<lane> lanes_;
    std::vector<peer *> unsettled_; ///< with puts that no marker has shown to be there
    std::atomic<int> num_unsettled_{0};
    std::vector<peer *> waiting_;   ///< with something deferred
    std::vector<peer *> marked_;    ///< with markers under way
    std::vector<peer *> unshipped_; ///< with messages that have not been handed to GPI-2
    std::vector<peer *> debtors_;
    std::vector<peer *> broken_; ///< to be given up without the lock
    std::atomic_flag receiving_;
    std::atomic<std::thread::id> receiver_; ///< whose handlers run
    std::uint32_t next_sender_ = 0;
};

} // namespace diomp::conduit::gaspi
