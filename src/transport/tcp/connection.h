// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A connection to a peer: the queue of data to write, and the parser of incoming frames.
//
// No call blocks. Small frames are coalesced in one buffer and sent together; large data is sent
// from the caller's buffer without a copy. The body of a frame is received directly into the buffer
// that the frame handler names.
#pragma once

#include "base/adaptive_mutex.h"
#include "base/unique_fd.h"
#include "transport/tcp/coalescer.h"
#include "transport/tcp/sealed_stream.h"
#include "transport/tcp/wire.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <span>
#include <string>
#include <sys/uio.h>
#include <vector>

namespace diomp::transport::tcp {

/// True for errors of a socket after which the call is to be repeated later.
constexpr bool is_transient(int code) {
    return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
}

class connection;

/// Handles received frames. Called by one thread per connection at a time; may send.
class frame_handler {
public:
    virtual ~frame_handler() = default;
    /// Returns the buffer for the body of a frame; `front` holds the head.head bytes before it.
    /// nullptr: the frame is invalid, and the connection fails.
    virtual std::byte *find_body_buffer(connection &conn, const frame &head,
                                        std::span<const std::byte> front) = 0;
    /// Handles a frame whose body has been received. False: the frame is invalid.
    virtual bool handle_frame(connection &conn, const frame &head, std::span<const std::byte> front,
                              const std::byte *body) = 0;
};

class peer;

class connection {
public:
    /// Data up to this size is copied when it is sent. The limit for puts is larger: most puts are
    /// followed by a flush, and a copy costs less than a packet of its own for the flush.
    static constexpr std::size_t max_copied_bytes = 8 * 1024;
    static constexpr std::size_t max_copied_put_bytes = 64 * 1024;
    /// Puts up to this size wait in thread coalescers where several threads put.
    static constexpr std::size_t max_coalesced_put_bytes = 1024;
    static constexpr bool is_copied(kind what, std::size_t nbytes) {
        return nbytes <= (what == kind::put ? max_copied_put_bytes : max_copied_bytes);
    }

    /// A connection that is being opened: nothing is sent or received before open() and confirm().
    explicit connection(peer &target)
        : target_(&target), state_(state::opening), is_deferred_(true) {}
    /// An open connection whose peer has been authenticated; not encrypted if `sealed` is null.
    connection(unique_fd fd, peer &target, std::unique_ptr<sealed_stream> sealed = nullptr)
        : fd_(std::move(fd)), target_(&target), sealed_(std::move(sealed)) {}
    /// A redundant connection of a peer that is reached by another one: a frame on it is an error.
    explicit connection(unique_fd fd) : fd_(std::move(fd)) {}

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] bool is_sealed() const { return sealed_ != nullptr; }
    /// The peer rank; nullptr if another connection to it is in use.
    [[nodiscard]] peer *target() const { return target_.load(std::memory_order_acquire); }
    void set_target(peer &known) { target_.store(&known, std::memory_order_release); }

    // Any thread.
    /// Queues a frame with its data. Data that is not copied stays in use until `source_free` is
    /// done; `source_free` counts only data that is still in use on return, and may be null.
    void send(const frame &head, const void *data, std::size_t nbytes, completion *source_free);
    /// Queues a frame with a header part, which is always copied, and its data.
    void send(const frame &head, std::span<const std::byte> front, const void *data,
              std::size_t nbytes, completion *source_free);
    /// Queues a put. `num_puts` counts it when it enters the send queue; small puts of concurrent
    /// threads enter the queue in drain_coalescers(). With `with_flush` a flush is sent along with
    /// the put, and the data is not copied. Returns the number of that flush, otherwise 0.
    std::uint64_t send_put(const frame &head, const void *data, completion &source_free,
                           std::atomic<std::uint64_t> &num_puts, bool with_flush);
    /// Moves all coalesced puts to the send queue. Call before a flush.
    void drain_coalescers();
    /// Writes queued data until the socket is full. If another thread is writing, that thread
    /// writes the rest. True if this call has written anything.
    bool transmit();
    /// True if data waits for space in the socket.
    [[nodiscard]] bool has_queued_data() const {
        const connection &here = effective();
        return here.has_queued_.load(std::memory_order_acquire) ||
               here.has_transmitting_.load(std::memory_order_acquire);
    }
    /// Bytes of copied data that wait to be written.
    [[nodiscard]] std::size_t copied_bytes() const {
        const connection &here = effective();
        return here.visible_queued_bytes_.load(std::memory_order_relaxed) +
               here.visible_transmitting_bytes_.load(std::memory_order_relaxed);
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
    /// The peer has acknowledged a deferred connection: it is used in both directions from now on.
    /// False: the connection was not deferred.
    [[nodiscard]] bool confirm();
    /// Replaces a deferred connection by `next`, which the peer has opened: queued data and all
    /// later sends go to `next`, and this connection is no longer used. False: the connection was
    /// not deferred.
    [[nodiscard]] bool supersede_by(connection &next);
    /// True if the last write was by another thread. A reader that finds the socket empty then
    /// makes writers sleep on the lock of the socket.
    [[nodiscard]] bool is_written_by_others() const {
        ::pthread_t const writer = last_writer_.load(std::memory_order_relaxed);
        return writer != ::pthread_t{} && writer != ::pthread_self();
    }
    /// Reads from the socket and calls the handler for each frame. True if anything was read.
    /// Returns at once if another thread is reading.
    bool receive(frame_handler &handler);

    enum class state : std::uint8_t { connected, opening, broken };
    /// opening: before open(). broken: no more transfers, and all sources are free.
    [[nodiscard]] state current_state() const { return state_.load(std::memory_order_acquire); }
    /// Sets the socket of a connection that was being opened; queued data is sent after confirm().
    /// False: the connection has failed meanwhile.
    [[nodiscard]] bool open(unique_fd fd, std::unique_ptr<sealed_stream> sealed = nullptr);
    void disconnect(std::string why);
    /// The cause of state::broken.
    [[nodiscard]] std::string failure_reason();

    /// `num_busy` counts this connection while data is queued, or while it is broken and not
    /// closed.
    void count_busy_in(std::atomic<int> &num_busy);
    /// Marks a broken connection as handled. False: it was marked before.
    [[nodiscard]] bool mark_closed();
    [[nodiscard]] bool is_closed() const { return is_closed_.load(std::memory_order_acquire); }

    /// A body that is being received into `buffer` goes to scratch memory from now on.
    void revoke_body_buffer(const std::byte *buffer);
    /// Memory for bodies without a buffer of their own; valid until handle_frame() has returned.
    [[nodiscard]] std::byte *scratch(std::size_t nbytes) {
        scratch_.resize(std::max(scratch_.size(), nbytes));
        return scratch_.data();
    }

    std::atomic<bool> is_watched_for_write{false};

private:
    /// More coalesced data than this is sent at once.
    static constexpr std::size_t transmit_threshold_bytes = 16 * 1024;
    struct send_item {
        std::vector<std::byte> copy; ///< empty: `data` is the caller's
        const std::byte *data = nullptr;
        std::size_t left = 0;
        completion *source_free = nullptr;
    };

    [[nodiscard]] bool has_several_putters();
    void create_coalescers();
    [[nodiscard]] bool has_coalesced_puts() const {
        return num_filled_coalescers_.load(std::memory_order_acquire) > 0;
    }
    void coalesce_put(const frame &head, const void *data, std::atomic<std::uint64_t> &num_puts);
    void drain_coalescer(thread_coalescer &full); ///< under its mutex
    void enqueue_puts(const coalescer &puts, std::uint64_t num,
                      std::atomic<std::uint64_t> &counter);
    std::uint64_t send_in_order(const frame &head, std::span<const std::byte> front,
                                const void *data, std::size_t nbytes, completion *source_free,
                                std::atomic<std::uint64_t> *num_puts, bool with_flush);
    // Under queue_mutex_:
    void enqueue_coalesced(std::vector<std::byte> &&next_buffer);
    void update_queued_counts();
    // Under write_mutex_:
    bool take_queued();
    bool write_some();
    ssize_t write_plain(bool &is_all);
    ssize_t write_sealed(bool &is_all);
    [[nodiscard]] bool has_unsent() const {
        return !transmitting_.empty() || (sealed_ != nullptr && sealed_->has_unsent());
    }
    void consume(std::size_t nbytes);
    void update_transmitting_counts();
    // Under both:
    void update_counts();
    void fail(std::string why);
    [[nodiscard]] const connection &effective() const {
        const connection *const next = superseded_by_.load(std::memory_order_acquire);
        return next == nullptr ? *this : *next;
    }
    // Under receive_mutex_:
    [[nodiscard]] std::size_t space_after_body() const;
    ssize_t read_into(std::byte *body, std::size_t missing, bool may_receive);
    [[nodiscard]] bool is_drained() const { return sealed_ == nullptr || sealed_->is_drained(); }
    [[nodiscard]] std::string describe_end(ssize_t got, int code) const;
    bool read_some(frame_handler &handler);
    bool parse(frame_handler &handler);
    [[nodiscard]] bool has_header() const;
    bool begin_frame(frame_handler &handler);
    bool end_frame(frame_handler &handler);

    unique_fd fd_;
    std::atomic<peer *> target_{nullptr};
    std::unique_ptr<sealed_stream> sealed_; ///< set before state::connected; null: plain
    std::atomic<state> state_{state::connected};
    std::atomic<bool> is_closed_{false};
    std::atomic<connection *> superseded_by_{nullptr}; ///< set under write_mutex_ and queue_mutex_
    std::atomic<::pthread_t> last_writer_{};
    std::atomic<std::uint32_t> last_round_{0};
    std::atomic<int> num_in_round_{0};

    // Senders hold queue_mutex_ for a moment. The writer takes all that is queued, and others go on
    // queueing during the system call. Lock order: receive_mutex_, write_mutex_, queue_mutex_.
    std::mutex write_mutex_;
    adaptive_mutex queue_mutex_;
    std::atomic<bool> is_transmit_requested_{false};
    std::atomic<bool> is_full_{false}; ///< the last write has filled the socket
    // Under queue_mutex_:
    std::deque<send_item> queue_;
    coalescer coalesced_; ///< after queue_
    std::size_t queued_copied_bytes_ = 0;
    std::atomic<int> *num_busy_ = nullptr;
    bool is_counted_busy_ = false; ///< in num_busy_
    bool is_deferred_ = false;     ///< nothing is written
    std::string why_;
    // Under write_mutex_:
    std::deque<send_item> transmitting_; ///< before queue_
    std::size_t transmitting_copied_bytes_ = 0;
    std::vector<std::byte> recycled_buffer_; ///< empty; keeps its memory

    std::atomic<::pthread_t> first_putter_{};
    std::atomic<thread_coalescers *> coalescers_{nullptr}; ///< null until several threads put
    std::unique_ptr<thread_coalescers> coalescers_owner_;  ///< under queue_mutex_
    std::atomic<int> num_filled_coalescers_{0};

    std::atomic<bool> has_queued_{false};
    std::atomic<bool> has_transmitting_{false};
    std::atomic<std::size_t> visible_queued_bytes_{0};
    std::atomic<std::size_t> visible_transmitting_bytes_{0};

    std::mutex receive_mutex_;
    std::unique_ptr<std::byte[]> buffer_;
    std::size_t begin_ = 0; ///< of the bytes not yet parsed
    std::size_t end_ = 0;
    std::optional<frame> current_;                          ///< frame whose body is being received
    std::array<std::byte, max_am_long_header_bytes> front_; ///< of current_
    std::byte *body_ = nullptr;
    std::size_t num_body_ = 0; ///< bytes received
    std::vector<std::byte> scratch_;
};

} // namespace diomp::transport::tcp
