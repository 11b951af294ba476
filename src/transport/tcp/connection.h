// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A connection to a peer: its state, its queue of data to write, and its incoming frames.
//
// No call blocks. Small frames are coalesced in one buffer and sent together; large data is sent
// from the caller's buffer without a copy.
#pragma once

#include "base/adaptive_mutex.h"
#include "base/assert.h"
#include "transport/tcp/frame_receiver.h"
#include "transport/tcp/send_queue.h"
#include "transport/tcp/socket_writer.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace diomp::transport::tcp {

class peer;

/// opening -> deferred -> connected; opening or deferred -> superseded; all of these but
/// superseded, and redundant, -> broken -> closed.
enum class connection_state : std::uint8_t {
    opening,    ///< The socket is being connected: frames are queued.
    deferred,   ///< This rank has opened it: frames are queued until the peer's acknowledgement.
    connected,  ///< Frames are sent and received.
    redundant,  ///< The peer is reached by another connection: a frame on this one is an error.
    superseded, ///< The peer has opened the connection that is used, to which all frames go.
    broken,     ///< It has failed: no more transfers, and all sources are free.
    closed,     ///< The failure has been handled.
};
/// True if frames may arrive, or the end of the connection.
constexpr bool is_open(connection_state of) {
    return of >= connection_state::deferred && of <= connection_state::redundant;
}
constexpr bool has_ended(connection_state of) { return of >= connection_state::superseded; }
/// The legal changes of state.
constexpr bool may_follow(connection_state next, connection_state now) {
    switch (next) {
    case connection_state::deferred:
        return now == connection_state::opening;
    case connection_state::connected:
        return now == connection_state::deferred;
    case connection_state::superseded:
        return now == connection_state::opening || now == connection_state::deferred;
    case connection_state::broken:
        return !has_ended(now);
    case connection_state::closed:
        return now == connection_state::broken;
    case connection_state::opening:
    case connection_state::redundant:
        break; // at construction only
    }
    return false;
}

class connection {
public:
    using state = connection_state;

    /// A connection that is being opened. `num_busy` counts each connection while data is queued,
    /// or while it is broken and not closed; it may be null.
    explicit connection(peer &target, std::atomic<int> *num_busy = nullptr)
        : target_(&target), state_(state::opening), busy_(num_busy) {}
    /// An open connection whose peer has been authenticated; not encrypted if `sealed` is null.
    connection(unique_fd fd, peer &target, std::unique_ptr<sealed_stream> sealed = nullptr,
               std::atomic<int> *num_busy = nullptr)
        : stream_(std::move(fd), std::move(sealed)), target_(&target), state_(state::connected),
          busy_(num_busy) {}
    /// A redundant connection.
    explicit connection(unique_fd fd, std::atomic<int> *num_busy = nullptr)
        : stream_(std::move(fd), nullptr), state_(state::redundant), busy_(num_busy) {}

    [[nodiscard]] const byte_stream &stream() const { return stream_; }
    [[nodiscard]] const socket_writer &writer() const { return writer_; }
    [[nodiscard]] frame_receiver &incoming() { return incoming_; }
    /// The peer rank; nullptr if another connection to it is in use.
    [[nodiscard]] peer *target() const { return target_.load(std::memory_order_acquire); }

    // Any thread.
    /// Queues a frame with a header part, which is always copied, and its data. Data that is not
    /// copied stays in use until `source_free` is done; `source_free` counts only data that is
    /// still in use on return, and may be null.
    void send(const frame &head, const void *data, std::size_t nbytes, completion *source_free,
              std::span<const std::byte> front = {}) {
        send_in_order(head, front, data, nbytes, source_free, nullptr, false);
    }
    /// Queues a put, which `num_puts` counts. With `with_flush` a flush is sent along with the put,
    /// and the data is not copied. Returns the number of that flush, otherwise 0.
    std::uint64_t send_put(const frame &head, const void *data, completion &source_free,
                           std::atomic<std::uint64_t> &num_puts, bool with_flush) {
        return send_in_order(head, {}, data, head.nbytes, &source_free, &num_puts, with_flush);
    }
    /// Queues `num` coalesced puts, which `num_puts` counts. True: call transmit().
    [[nodiscard]] bool send_puts(const coalescer &puts, std::uint64_t num,
                                 std::atomic<std::uint64_t> &num_puts);
    /// Writes queued data until the socket is full. If another thread is writing, that thread
    /// writes the rest. True if this call has written anything.
    bool transmit();
    /// True if data waits for space in the socket.
    [[nodiscard]] bool has_queued_data() const {
        const connection &here = effective();
        return here.queue_.has_data() || here.writer_.has_data();
    }
    /// Bytes of copied data that wait to be written.
    [[nodiscard]] std::size_t copied_bytes() const {
        const connection &here = effective();
        return here.queue_.visible_bytes() + here.writer_.visible_bytes();
    }

    [[nodiscard]] state current_state() const { return state_.load(std::memory_order_acquire); }
    /// opening -> deferred. False: the connection has failed meanwhile.
    [[nodiscard]] bool open(unique_fd fd, std::unique_ptr<sealed_stream> sealed = nullptr);
    /// deferred -> connected. False: the connection was not deferred.
    [[nodiscard]] bool confirm();
    /// opening or deferred -> superseded: queued data and all later sends go to `next`, and this
    /// connection is no longer used. False: it was in another state.
    [[nodiscard]] bool supersede_by(connection &next);
    /// -> broken, unless it has ended.
    void disconnect(std::string why);
    /// The cause of state::broken.
    [[nodiscard]] std::string failure_reason();
    /// broken -> closed. False: it was in another state.
    [[nodiscard]] bool mark_closed();

private:
    /// The part of a connection in a count of busy ones.
    class busy_mark {
    public:
        explicit busy_mark(std::atomic<int> *count) : count_(count) {}
        void set(bool is_busy) {
            if (count_ != nullptr && is_busy != is_counted_) {
                is_counted_ = is_busy;
                [[maybe_unused]] int const before =
                    count_->fetch_add(is_busy ? 1 : -1, std::memory_order_release);
                DIOMP_ASSERT(before >= (is_busy ? 0 : 1), "a connection is counted once");
            }
        }

    private:
        std::atomic<int> *count_;
        bool is_counted_ = false;
    };

    [[nodiscard]] const connection &effective() const {
        const connection *const next = superseded_by_.load(std::memory_order_acquire);
        return next == nullptr ? *this : *next;
    }
    std::uint64_t send_in_order(const frame &head, std::span<const std::byte> front,
                                const void *data, std::size_t nbytes, completion *source_free,
                                std::atomic<std::uint64_t> *num_puts, bool with_flush);
    void publish_queued(); ///< under queue_mutex_
    void change_to(state next) {
        DIOMP_ASSERT(may_follow(next, current_state()),
                     "a connection changes its state as in the list");
        state_.store(next, std::memory_order_release);
    }
    // Under write_mutex_:
    bool take_queued();
    bool write_some();
    // Under both:
    void publish();
    void fail(std::string why);

    byte_stream stream_; ///< set before the state is `deferred`
    std::atomic<peer *> target_{nullptr};
    std::atomic<state> state_;                         ///< set under queue_mutex_
    std::atomic<connection *> superseded_by_{nullptr}; ///< set under write_mutex_ and queue_mutex_

    // Senders hold queue_mutex_ for a moment. The writer takes all that is queued, and others go on
    // queueing during the system call. Lock order: write_mutex_, queue_mutex_.
    std::mutex write_mutex_;
    adaptive_mutex queue_mutex_;
    std::atomic<bool> is_transmit_requested_{false};
    send_queue queue_;     ///< under queue_mutex_
    busy_mark busy_;       ///< under queue_mutex_
    socket_writer writer_; ///< under write_mutex_
    std::string why_;      ///< under queue_mutex_
    frame_receiver incoming_{*this, stream_};
};

/// The peer's address, and whether the data is encrypted.
std::string describe_path(const connection &of);

} // namespace diomp::transport::tcp
