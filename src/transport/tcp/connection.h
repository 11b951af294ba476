// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A connection to a peer: its state, its queue of data to write, and its incoming frames; and how
// it is opened, confirmed, closed while it is idle, and opened again.
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

class lifecycle;
class peer;

/// opening -> deferred -> connected, at first and each time after the connection was closed because
/// it was idle: connected -> closing -> ended on the side that requests that, connected -> yielded
/// -> ended on the other one, then dormant -> opening. A socket that the peer has opened replaces
/// that of a connection that is not connected: -> accepted -> connected, or -> ended if the peer
/// has given that socket up. All of these, and redundant, -> broken -> closed.
enum class connection_state : std::uint8_t {
    opening,   ///< The socket is being connected: frames are queued.
    ended,     ///< Both sides have agreed to close the socket, which is still to be done.
    dormant,   ///< There is no socket: frames are queued, and lead to a new one.
    deferred,  ///< This rank has opened it: frames are queued until the peer's acknowledgement.
    accepted,  ///< The peer has opened the socket: frames are queued until one of the peer's.
    connected, ///< Frames are sent and received.
    closing,   ///< This rank has requested the end: frames are queued until the reply.
    yielded,   ///< The peer has requested the end: frames are queued, and the peer closes.
    redundant, ///< The peer is reached by another connection: a frame on this one is an error.
    broken,    ///< It has failed: no more transfers, and all sources are free.
    closed,    ///< The failure has been handled.
};
/// True if frames may arrive, or the end of the connection.
constexpr bool is_open(connection_state of) {
    return of >= connection_state::deferred && of <= connection_state::redundant;
}
constexpr bool has_failed(connection_state of) { return of >= connection_state::broken; }
/// True if the peer may replace the socket by one that it has opened.
constexpr bool may_be_replaced(connection_state of) {
    return of <= connection_state::accepted || of == connection_state::yielded;
}
/// The legal changes of state.
constexpr bool may_follow(connection_state next, connection_state now) {
    using enum connection_state;
    switch (next) {
    case deferred:
        return now == opening;
    case accepted:
        return may_be_replaced(now);
    case connected:
        return now == deferred || now == accepted || now == closing;
    case closing:
        return now == connected;
    case yielded:
        return now == connected || now == closing;
    case ended:
        return now == closing || now == yielded || now == accepted;
    case dormant:
        return now == ended;
    case opening:
        return now == dormant;
    case broken:
        return !has_failed(now);
    case closed:
        return now == broken;
    case redundant:
        return now == closed;
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
    [[nodiscard]] peer *target() const { return target_; }

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
    /// True if data waits for space in the socket, or for a socket (state::dormant).
    [[nodiscard]] bool has_queued_data() const { return queue_.has_data() || writer_.has_data(); }
    /// Bytes of copied data that wait to be written.
    [[nodiscard]] std::size_t copied_bytes() const {
        return queue_.visible_bytes() + writer_.visible_bytes();
    }
    /// Calls `set` with the socket and whether it is to be polled for writing, if that has changed.
    template <typename Set>
    void update_write_watch(Set &&set) {
        bool const waits = has_queued_data() && is_open(current_state());
        if (waits != is_watched_for_write_.load(std::memory_order_relaxed)) {
            std::lock_guard const guard(write_mutex_);
            if (stream_.fd() >= 0) {
                is_watched_for_write_.store(waits, std::memory_order_relaxed);
                set(stream_.fd(), waits);
            }
        }
    }

    [[nodiscard]] state current_state() const { return state_.load(std::memory_order_acquire); }
    /// Changes of state.
    [[nodiscard]] tcp::lifecycle lifecycle();
    /// The peer has closed the socket: yielded or accepted -> ended, otherwise -> broken.
    void end_of_stream(std::string why);

    /// -> broken, unless it has failed.
    void disconnect(std::string why);
    /// The peer's address, and whether the data is encrypted.
    [[nodiscard]] std::string describe_path();
    /// The cause of state::broken.
    [[nodiscard]] std::string failure_reason();

private:
    friend class tcp::lifecycle;

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
    void lose_stream(std::string why);

    /// Set before the state is `deferred`; replaced under the locks of incoming_ and of the writer.
    byte_stream stream_;
    peer *const target_ = nullptr;
    std::atomic<state> state_; ///< set under queue_mutex_
    std::atomic<bool> is_watched_for_write_{false};

    // Senders hold queue_mutex_ for a moment. The writer takes all that is queued, and others go on
    // queueing during the system call. Lock order: that of incoming_, write_mutex_, queue_mutex_.
    std::mutex write_mutex_;
    adaptive_mutex queue_mutex_;
    std::atomic<bool> is_transmit_requested_{false};
    send_queue queue_;     ///< under queue_mutex_
    busy_mark busy_;       ///< under queue_mutex_
    socket_writer writer_; ///< under write_mutex_
    std::string why_;      ///< under queue_mutex_
    frame_receiver incoming_{*this, stream_};
};

/// The changes of a connection's state (connection_state.h), except to `broken`. No call blocks.
/// Any thread.
class lifecycle {
public:
    explicit lifecycle(connection &of) : conn_(of) {}

    /// opening -> deferred. False: the connection has failed meanwhile.
    [[nodiscard]] bool open(unique_fd fd, std::unique_ptr<sealed_stream> sealed = nullptr);
    /// deferred or accepted -> connected. False: it was in another state.
    [[nodiscard]] bool confirm();
    /// -> accepted, with a socket that the peer has opened; acknowledges it. Queued data goes there
    /// when the peer has sent something: it may have opened the socket and then used another one.
    /// False: the connection is in use, or has failed.
    [[nodiscard]] bool adopt(unique_fd fd, std::unique_ptr<sealed_stream> sealed = nullptr);
    /// closed -> redundant, for a connection without a target. False: it was in another state.
    [[nodiscard]] bool reuse(unique_fd fd);

    // The end of an idle connection. Frames that are sent meanwhile are queued, and sent by the
    // next socket, so that closing changes nothing but times.
    /// connected -> closing. False: it was in another state, or data waits.
    [[nodiscard]] bool request_close();
    /// Replies to the peer's request: connected or closing -> yielded, or a refusal if data waits
    /// or unless `may_close`. Of two requests that cross each other that of the lower rank counts;
    /// `is_lower`: this is that rank. False: the request is invalid.
    [[nodiscard]] bool reply_to_close(bool is_lower, bool may_close);
    /// closing -> ended: the peer has agreed. False: it was in another state.
    [[nodiscard]] bool end_close();
    /// closing -> connected: the peer has refused. False: it was in another state.
    [[nodiscard]] bool resume();
    /// True if the socket is to be closed, or data waits for another one.
    [[nodiscard]] bool needs_release() const {
        return conn_.current_state() == state::ended ||
               (conn_.current_state() == state::dormant && conn_.queue_.has_data());
    }
    /// ended -> dormant: closes the socket. No thread that calls this is in incoming(). False: it
    /// was in another state.
    [[nodiscard]] bool release();
    /// dormant -> opening. False: it was in another state.
    [[nodiscard]] bool reopen();
    /// broken -> closed. False: it was in another state.
    [[nodiscard]] bool mark_closed();

private:
    using state = connection_state;

    /// False: the connection is not in the first state.
    [[nodiscard]] bool change(state from, state to);
    // Under the locks of the writer and of the queue:
    /// Also under that of incoming().
    void replace_stream(byte_stream &&next);
    [[nodiscard]] bool is_idle() const;
    /// Writes a frame without a body after what is being written; queued data stays behind it.
    void append_last(const frame &head);

    connection &conn_;
};

inline lifecycle connection::lifecycle() { return tcp::lifecycle(*this); }

} // namespace diomp::transport::tcp
