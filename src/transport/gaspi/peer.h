// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations outstanding towards one rank. Protected by the lock of the network, except atomic
// members and the ring of incoming messages.
#pragma once

#include "transport/common/network_peer.h"
#include "transport/gaspi/queue.h"
#include "transport/gaspi/ring.h"

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace diomp::transport::gaspi {

/// Limit of the bytes outstanding to a peer in operations below `large_bytes`: sockets hold more.
constexpr std::uint64_t window_bytes = std::uint64_t{128} << 10;
constexpr std::size_t large_bytes = std::size_t{64} << 10;

struct put_counts {
    std::uint64_t num_puts = 0;
    std::uint64_t bytes = 0;
    std::uint64_t small_bytes = 0; ///< of puts below large_bytes
};

/// Counts the puts to a peer that are not known to have arrived. Each marker covers the puts since
/// the last one.
class unflushed_puts {
public:
    void add(std::size_t nbytes) {
        std::size_t const small = nbytes < large_bytes ? nbytes : 0;
        ++unmarked_.num_puts;
        unmarked_.bytes += nbytes;
        unmarked_.small_bytes += small;
        bytes_ += nbytes;
        small_bytes_ += small;
    }
    /// Whether a put of this size must wait.
    [[nodiscard]] bool is_full_for(std::size_t nbytes) const {
        return (nbytes < large_bytes ? bytes_ : small_bytes_) > window_bytes;
    }
    /// Whether a large write outside of the window must wait.
    [[nodiscard]] bool is_full_of_small_puts() const { return small_bytes_ > window_bytes; }
    [[nodiscard]] bool is_empty() const { return bytes_ == 0; }
    /// Whether a marker is due before any flush.
    [[nodiscard]] bool wants_marker() const { return unmarked_.small_bytes > window_bytes / 4; }
    /// Puts since the last marker.
    [[nodiscard]] const put_counts &unmarked() const { return unmarked_; }
    /// The puts that a new marker covers.
    [[nodiscard]] put_counts take_unmarked() { return std::exchange(unmarked_, {}); }
    /// The puts of a marker have arrived.
    void complete(const put_counts &arrived) {
        bytes_ -= arrived.bytes;
        small_bytes_ -= arrived.small_bytes;
    }

private:
    put_counts unmarked_;
    std::uint64_t bytes_ = 0; ///< of puts after the last completed marker
    std::uint64_t small_bytes_ = 0;
};

/// Counts the gets from a peer, in chunks.
class outstanding_gets {
public:
    void add(std::size_t nbytes) {
        ++num_gets_;
        bytes_ += nbytes;
    }
    void complete(std::size_t nbytes) {
        --num_gets_;
        bytes_ -= nbytes;
    }
    /// Whether gets below large_bytes must wait.
    [[nodiscard]] bool is_full() const {
        return num_gets_ >= max_small_gets || bytes_ > window_bytes;
    }
    // Any thread:
    [[nodiscard]] std::uint32_t num_gets() const {
        return num_gets_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

private:
    static constexpr std::uint32_t max_small_gets = 256;

    std::atomic<std::uint32_t> num_gets_{0};
    std::atomic<std::uint64_t> bytes_{0};
};

/// A read after earlier operations of a connection: when it completes, they have arrived.
struct marker {
    std::atomic<std::uint32_t> *word;
    put_counts puts;
    std::vector<completion *> waiting;
};

/// A small put that waits for space in a queue, or a flush of the deferred puts before it.
struct deferred {
    std::uint64_t offset;
    std::vector<std::byte> bytes;
    completion *flush; ///< nullptr: a put
};

/// Small puts that were copied while the peer accepted none, and flushes among them.
class deferred_queue {
public:
    [[nodiscard]] bool is_empty() const { return waiting_.empty(); }
    [[nodiscard]] bool has_space_for(std::size_t nbytes) const {
        return nbytes_ + nbytes <= max_bytes && waiting_.size() < max_waiting;
    }
    void add(deferred what) {
        nbytes_ += what.bytes.size();
        waiting_.push_back(std::move(what));
    }
    [[nodiscard]] const deferred &front() const { return waiting_.front(); }
    void pop_front() {
        nbytes_ -= waiting_.front().bytes.size();
        waiting_.pop_front();
    }
    [[nodiscard]] std::deque<deferred> take_all() {
        nbytes_ = 0;
        return std::exchange(waiting_, {});
    }
    /// The puts among them.
    [[nodiscard]] put_counts count_puts() const;

private:
    static constexpr std::size_t max_bytes = std::size_t{4} << 20;
    static constexpr std::size_t max_waiting = 16384;

    std::deque<deferred> waiting_;
    std::size_t nbytes_ = 0;
};

/// Puts and messages use different queues, so each kind has its own markers.
enum class marker_kind : std::uint8_t { puts, messages };

class peer final : public network_peer {
public:
    peer(world_rank rank, std::string host, const work_segment &work)
        : network_peer(rank, std::move(host)),
          outgoing(work.outgoing_ring(rank),
                   static_cast<std::uint32_t>(work.ring_bytes() / message_unit)),
          incoming(work.incoming_ring(rank),
                   static_cast<std::uint32_t>(work.ring_bytes() / message_unit)) {}

    [[nodiscard]] bool is_awaited() override;
    [[nodiscard]] std::string describe_outstanding(bool is_silent) override;
    [[nodiscard]] std::string count_outstanding() const override;
    [[nodiscard]] std::deque<marker> &markers_of(marker_kind kind) {
        return markers[static_cast<std::size_t>(kind)];
    }

    std::array<gaspi_queue *, num_queue_kinds> queues{};
    std::array<std::deque<marker>, 2> markers;
    unflushed_puts puts;
    outstanding_gets gets;
    deferred_queue waiting;                      ///< not posted to GPI-2 yet
    bool is_unflushed = false;                   ///< is in the list of `rma_operations`
    std::atomic<std::uint32_t> num_flushes{0};   ///< waited for
    std::atomic<std::uint32_t> num_transfers{0}; ///< chunks of puts whose source is still in use

    send_ring outgoing;
    bool is_untransmitted = false; ///< is in the list of `message_sender`
    receive_ring incoming;
    /// Position to acknowledge; if set, the peer is in the list of `message_sender`.
    std::optional<std::uint32_t> credit_due;
};

} // namespace diomp::transport::gaspi
