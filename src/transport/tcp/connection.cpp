// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <sys/socket.h>
#include <utility>

namespace diomp::transport::tcp {
namespace {

/// Threshold after a large put: its flush may follow, and is sent along with it.
constexpr std::size_t transmit_threshold_before_flush = 256 * 1024;
constexpr std::size_t max_iovecs = 32;

const std::byte *bytes_of(const void *object) { return static_cast<const std::byte *>(object); }

} // namespace

void connection::update_queued_counts() {
    visible_queued_bytes_.store(queued_copied_bytes_ + coalesced_.size(),
                                std::memory_order_relaxed);
    bool const has_any = !is_deferred_ && (!queue_.empty() || !coalesced_.empty());
    has_queued_.store(has_any, std::memory_order_release);
    if (num_busy_ != nullptr && (has_any || has_coalesced_puts()) && !is_counted_busy_) {
        is_counted_busy_ = true;
        num_busy_->fetch_add(1, std::memory_order_release);
    }
}

void connection::update_transmitting_counts() {
    visible_transmitting_bytes_.store(transmitting_copied_bytes_, std::memory_order_relaxed);
    has_transmitting_.store(has_unsent(), std::memory_order_release);
}

void connection::update_counts() {
    update_queued_counts();
    update_transmitting_counts();
    bool const is_busy = has_queued_.load(std::memory_order_relaxed) || has_coalesced_puts() ||
                         has_unsent() || (current_state() == state::broken && !is_closed());
    if (num_busy_ != nullptr && is_busy != is_counted_busy_) {
        is_counted_busy_ = is_busy;
        num_busy_->fetch_add(is_busy ? 1 : -1, std::memory_order_release);
    }
}

void connection::count_busy_in(std::atomic<int> &num_busy) {
    std::scoped_lock const guard(write_mutex_, queue_mutex_);
    num_busy_ = &num_busy;
    update_counts();
}

bool connection::mark_closed() {
    std::scoped_lock const guard(write_mutex_, queue_mutex_);
    if (is_closed_.exchange(true, std::memory_order_release)) {
        return false;
    }
    update_counts();
    return true;
}

/// Moves coalesced data to the queue, so that data that is not copied can follow it.
void connection::enqueue_coalesced(std::vector<std::byte> &&next_buffer) {
    if (coalesced_.empty()) {
        return;
    }
    send_item next;
    next.copy = coalesced_.take(std::move(next_buffer));
    next.data = next.copy.data();
    next.left = next.copy.size();
    queued_copied_bytes_ += next.left;
    queue_.push_back(std::move(next));
}

void connection::send(const frame &head, const void *data, std::size_t nbytes,
                      completion *source_free) {
    send(head, {}, data, nbytes, source_free);
}

void connection::send(const frame &head, std::span<const std::byte> front, const void *data,
                      std::size_t nbytes, completion *source_free) {
    send_in_order(head, front, data, nbytes, source_free, nullptr, false);
}

std::uint64_t connection::send_put(const frame &head, const void *data, completion &source_free,
                                   std::atomic<std::uint64_t> &num_puts, bool with_flush) {
    if (!with_flush && head.nbytes <= max_coalesced_put_bytes && has_several_putters()) {
        coalesce_put(head, data, num_puts);
        return 0;
    }
    return send_in_order(head, {}, data, head.nbytes, &source_free, &num_puts, with_flush);
}

std::uint64_t connection::send_in_order(const frame &head, std::span<const std::byte> front,
                                        const void *data, std::size_t nbytes,
                                        completion *source_free,
                                        std::atomic<std::uint64_t> *num_puts, bool with_flush) {
    bool should_transmit = false;
    std::uint64_t flush_number = 0;
    {
        std::unique_lock guard(queue_mutex_);
        if (connection *const next = superseded_by_.load(std::memory_order_relaxed);
            next != nullptr) {
            guard.unlock();
            return next->send_in_order(head, front, data, nbytes, source_free, num_puts,
                                       with_flush);
        }
        std::uint64_t const number =
            num_puts != nullptr ? num_puts->fetch_add(1, std::memory_order_release) + 1 : 0;
        if (current_state() == state::broken) {
            return 0;
        }
        bool const copies = !with_flush && is_copied(head.what, nbytes);
        if (copies && num_puts != nullptr) {
            coalesced_.append_put(head, data, max_copied_put_bytes);
        } else {
            coalesced_.append(&head, sizeof(head));
            coalesced_.append(front.data(), front.size());
            coalesced_.append(data, copies ? nbytes : 0);
        }
        if (copies) {
            should_transmit =
                coalesced_.size() >= (nbytes > max_copied_bytes ? transmit_threshold_before_flush
                                                                : transmit_threshold_bytes);
        } else {
            enqueue_coalesced({});
            if (source_free != nullptr) {
                source_free->begin();
            }
            queue_.push_back({{}, bytes_of(data), nbytes, source_free});
            // Replies to gets are sent together, after all received frames are handled.
            should_transmit = head.what != kind::data;
        }
        if (with_flush) {
            flush_number = number;
            frame const flush{.what = kind::flush, .number = number};
            coalesced_.append(&flush, sizeof(flush));
        }
        update_queued_counts();
    }
    if (should_transmit && !is_full_.load(std::memory_order_relaxed)) {
        transmit();
    }
    return flush_number;
}

/// Removes `nbytes` that have been written from transmitting_.
void connection::consume(std::size_t nbytes) {
    while (nbytes > 0) {
        send_item &front = transmitting_.front();
        std::size_t const consumed = std::min(nbytes, front.left);
        front.data += consumed;
        front.left -= consumed;
        nbytes -= consumed;
        transmitting_copied_bytes_ -= front.copy.empty() ? 0 : consumed;
        if (front.left > 0) {
            return;
        }
        if (front.source_free != nullptr) {
            front.source_free->end();
        }
        if (front.copy.capacity() > recycled_buffer_.capacity()) {
            recycled_buffer_ = std::move(front.copy);
            recycled_buffer_.clear();
        }
        transmitting_.pop_front();
    }
}

/// Takes all queued data for writing. False: there is nothing to write.
bool connection::take_queued() {
    std::lock_guard const guard(queue_mutex_);
    if (!is_deferred_ && transmitting_.size() < max_iovecs) {
        if (!coalesced_.empty()) {
            enqueue_coalesced(std::move(recycled_buffer_));
            recycled_buffer_ = {};
        }
        std::ranges::move(queue_, std::back_inserter(transmitting_));
        queue_.clear();
        transmitting_copied_bytes_ += std::exchange(queued_copied_bytes_, 0);
    }
    update_counts();
    return has_unsent() && current_state() == state::connected;
}

/// Writes the first items of transmitting_; returns the result of ::sendmsg. `is_all`: all bytes
/// of these items were written.
ssize_t connection::write_plain(bool &is_all) {
    std::array<iovec, max_iovecs> iovecs;
    std::size_t num_iovecs = 0;
    std::size_t wanted = 0;
    for (send_item const &each : transmitting_) {
        if (num_iovecs == iovecs.size()) {
            break;
        }
        iovecs[num_iovecs++] = {const_cast<std::byte *>(each.data), each.left};
        wanted += each.left;
    }
    msghdr message{};
    message.msg_iov = iovecs.data();
    message.msg_iovlen = num_iovecs;
    ssize_t const written = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (written > 0) {
        consume(static_cast<std::size_t>(written));
    }
    is_all = written == static_cast<ssize_t>(wanted);
    return written;
}

/// Seals and writes one record, or a few short ones; returns the result of ::send.
ssize_t connection::write_sealed(bool &is_all) {
    if (!sealed_->has_unsent()) {
        while (!transmitting_.empty() && sealed_->has_space()) {
            send_item const &front = transmitting_.front();
            consume(sealed_->seal({front.data, front.left}));
        }
    }
    ssize_t const written = sealed_->send_some(fd_.get());
    is_all = !sealed_->has_unsent();
    return written;
}

bool connection::write_some() {
    bool moved = false;
    is_full_.store(false, std::memory_order_relaxed);
    last_writer_.store(::pthread_self(), std::memory_order_relaxed);
    while (take_queued()) {
        bool is_all = false;
        ssize_t const written = sealed_ == nullptr ? write_plain(is_all) : write_sealed(is_all);
        if (written < 0 && !is_transient(errno)) {
            std::string why = ::strerrordesc_np(errno);
            std::lock_guard const guard(queue_mutex_);
            fail(std::move(why));
            break;
        }
        moved = moved || written > 0;
        if (!is_all) {
            is_full_.store(true, std::memory_order_relaxed);
            break;
        }
    }
    update_transmitting_counts();
    return moved;
}

bool connection::transmit() {
    if (connection *const next = superseded_by_.load(std::memory_order_acquire); next != nullptr) {
        return next->transmit();
    }
    bool moved = false;
    // A thread that finds the lock taken sets this flag; the writer checks it after unlocking.
    is_transmit_requested_.store(true, std::memory_order_seq_cst);
    while (is_transmit_requested_.load(std::memory_order_seq_cst)) {
        std::unique_lock const guard(write_mutex_, std::try_to_lock);
        if (!guard.owns_lock()) {
            return moved;
        }
        is_transmit_requested_.store(false, std::memory_order_seq_cst);
        moved = write_some() || moved;
    }
    return moved;
}

bool connection::confirm() {
    {
        std::lock_guard const guard(queue_mutex_);
        if (!is_deferred_) {
            return false;
        }
        is_deferred_ = false;
        update_queued_counts();
    }
    transmit();
    return true;
}

bool connection::supersede_by(connection &next) {
    {
        std::scoped_lock const guard(write_mutex_, queue_mutex_, next.queue_mutex_);
        if (!is_deferred_ || current_state() == state::broken) {
            return false;
        }
        enqueue_coalesced({});
        next.enqueue_coalesced({});
        std::ranges::move(queue_, std::back_inserter(next.queue_));
        queue_.clear();
        next.queued_copied_bytes_ += std::exchange(queued_copied_bytes_, 0);
        why_ = "replaced by the connection that the peer has opened";
        state_.store(state::broken, std::memory_order_release);
        is_closed_.store(true, std::memory_order_release);
        target_.store(nullptr, std::memory_order_release);
        superseded_by_.store(&next, std::memory_order_release);
        ::shutdown(fd_.get(), SHUT_RDWR);
        update_counts();
        next.update_queued_counts();
    }
    drain_coalescers();
    next.transmit();
    return true;
}

void connection::fail(std::string why) {
    if (current_state() == state::broken) {
        return;
    }
    why_ = std::move(why);
    state_.store(state::broken, std::memory_order_release);
    for (std::deque<send_item> *const items : {&transmitting_, &queue_}) {
        for (send_item const &each : *items) {
            if (each.source_free != nullptr) {
                each.source_free->end(OMPX_ERR_PEER);
            }
        }
        items->clear();
    }
    coalesced_.clear();
    queued_copied_bytes_ = transmitting_copied_bytes_ = 0;
    if (sealed_ != nullptr) {
        sealed_->discard_unsent();
    }
    update_counts();
}

void connection::disconnect(std::string why) {
    std::scoped_lock const guard(write_mutex_, queue_mutex_);
    fail(std::move(why));
}

std::string connection::failure_reason() {
    std::lock_guard const guard(queue_mutex_);
    return why_;
}

bool connection::open(unique_fd fd, std::unique_ptr<sealed_stream> sealed) {
    std::scoped_lock const guard(receive_mutex_, write_mutex_, queue_mutex_);
    if (current_state() != state::opening) {
        return false;
    }
    fd_ = std::move(fd);
    sealed_ = std::move(sealed);
    state_.store(state::connected, std::memory_order_release);
    update_counts();
    return true;
}

} // namespace diomp::transport::tcp
