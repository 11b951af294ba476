// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A peer rank and the transfers in flight to and from it.
#pragma once

#include "transport/common/network_peer.h"
#include "transport/common/pending_gets.h"
#include "transport/tcp/thread_coalescers.h"
#include "transport/types.h"

#include <deque>
#include <mutex>

namespace diomp::transport::tcp {

class connection;

/// Any thread.
class peer final : public network_peer {
public:
    /// `num_busy`: see thread_coalescers.
    explicit peer(world_rank rank, std::string host = {}, std::atomic<int> *num_busy = nullptr)
        : network_peer(rank, std::move(host)), coalescers_(num_puts_, num_busy) {}

    /// The connection; nullptr before the first request of either side.
    [[nodiscard]] connection *active_connection() const {
        return connection_.load(std::memory_order_acquire);
    }
    void set_connection(connection &chosen) {
        connection_.store(&chosen, std::memory_order_release);
    }

    /// Queues a put. Small puts of concurrent threads enter the send queue in drain_coalescers().
    /// `conn` is the active connection. See connection::send_put.
    std::uint64_t send_put(connection &conn, const frame &head, const void *data,
                           completion &source_free, bool with_flush);
    /// Moves coalesced puts to the send queue. Call before a flush.
    void drain_coalescers() {
        if (connection *const conn = active_connection(); conn != nullptr) {
            coalescers_.drain(*conn);
        }
    }
    /// The first few messages between two rounds of progress are sent at once, for latency; further
    /// ones are sent together. Concurrent calls may be counted as one.
    [[nodiscard]] bool may_transmit_immediately(std::uint32_t round) {
        constexpr int max_immediate = 2;
        if (last_round_.exchange(round, std::memory_order_relaxed) != round) {
            num_in_round_.store(0, std::memory_order_relaxed);
        }
        return num_in_round_.fetch_add(1, std::memory_order_relaxed) < max_immediate;
    }

    /// Number of queued puts, in the order of sending.
    [[nodiscard]] std::atomic<std::uint64_t> &num_puts() { return num_puts_; }
    /// `done` counts until all queued puts are complete at the peer. True if the caller must send a
    /// flush with `number`.
    [[nodiscard]] bool begin_flush(completion &done, std::uint64_t &number);
    void end_flush(std::uint64_t number);
    /// True if the next put is to carry its flush along before one is requested: each of the last
    /// puts was followed by a flush. Consecutive puts without a flush switch this off; the cost is
    /// one unneeded acknowledgement.
    [[nodiscard]] bool should_piggyback_flush() const {
        return is_each_put_flushed_.load(std::memory_order_relaxed) &&
               num_flushed_.load(std::memory_order_relaxed) ==
                   num_puts_.load(std::memory_order_relaxed);
    }
    /// A flush of the first `number` puts was sent along with the last one.
    void note_flush_requested(std::uint64_t number);

    /// The connection is in use.
    void note_use() {
        if (!connection_use_.is_used.load(std::memory_order_relaxed)) {
            connection_use_.is_used.store(true, std::memory_order_relaxed);
        }
    }
    /// True if there was a note_use() since the last call.
    [[nodiscard]] bool take_use() {
        return connection_use_.is_used.exchange(false, std::memory_order_relaxed);
    }

    /// The peer is connected and will not use the listening port again. False: it was connected
    /// before.
    [[nodiscard]] bool note_connected() { return !connection_use_.has_connected.exchange(true); }

    get_id begin_get(void *destination, std::size_t nbytes, completion &done);
    /// Destination of a get, valid until end_get() or fail(); nullptr if the get has failed.
    [[nodiscard]] std::byte *destination_of(get_id id, std::size_t nbytes);
    void end_get(get_id id);
    [[nodiscard]] std::size_t num_gets() const { return gets_.count(); }

    [[nodiscard]] bool is_awaited() override { return has_outstanding() || unhandled_bytes() > 0; }
    /// True if a put or get is not complete.
    [[nodiscard]] bool has_outstanding() const {
        return gets_.count() > 0 || num_acknowledged_.load(std::memory_order_acquire) <
                                        num_puts_.load(std::memory_order_acquire);
    }
    [[nodiscard]] std::string describe_outstanding(bool is_silent) override;

private:
    struct pending_flush {
        std::uint64_t number; ///< of puts that must be complete
        completion *done;
    };

    [[nodiscard]] std::string count_outstanding() const override;
    void end_all() override;

    std::atomic<connection *> connection_{nullptr};
    thread_coalescers coalescers_;
    struct {
        std::atomic<bool> has_connected{false};
        std::atomic<bool> is_used{false};
    } connection_use_;
    std::atomic<std::uint32_t> last_round_{0};
    std::atomic<int> num_in_round_{0};
    std::atomic<std::uint64_t> num_puts_{0};
    std::atomic<std::uint64_t> num_acknowledged_{0};
    std::uint64_t num_flush_requested_ = 0;     ///< puts covered by a flush that was sent
    std::atomic<std::uint64_t> num_flushed_{0}; ///< puts before the last flush of a caller
    std::atomic<bool> is_each_put_flushed_{false};
    std::deque<pending_flush> pending_flushes_;
    pending_gets gets_;
};

} // namespace diomp::transport::tcp
