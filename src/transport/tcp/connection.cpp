// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/connection.h"

#include "base/assert.h"
#include "transport/tcp/address.h"
#include "transport/tcp/peer.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace diomp::transport::tcp {

namespace {

/// True if queued data can be written, or leads to a new socket.
constexpr bool can_progress(connection_state of) {
    return of == connection_state::connected || of == connection_state::dormant;
}

} // namespace

void connection::publish_queued() {
    if (queue_.publish(can_progress(current_state()))) {
        busy_.set(true);
    }
}

void connection::publish() {
    bool const has_queued = queue_.publish(can_progress(current_state()));
    writer_.publish(stream_);
    busy_.set(has_queued || writer_.has_unsent(stream_) || current_state() == state::broken ||
              current_state() == state::ended);
}

std::uint64_t connection::send_in_order(const frame &head, std::span<const std::byte> front,
                                        const void *data, std::size_t nbytes,
                                        completion *source_free,
                                        std::atomic<std::uint64_t> *num_puts, bool with_flush) {
    bool should_transmit = false;
    std::uint64_t flush_number = 0;
    {
        std::lock_guard const guard(queue_mutex_);
        std::uint64_t const number =
            num_puts != nullptr ? num_puts->fetch_add(1, std::memory_order_release) + 1 : 0;
        if (has_failed(current_state())) {
            return 0;
        }
        bool const copies = !with_flush && send_queue::is_copied(head.what, nbytes);
        if (copies && num_puts != nullptr) {
            queue_.append_put(head, data);
        } else {
            queue_.append(head, front, data, copies ? nbytes : 0);
        }
        if (copies) {
            should_transmit = queue_.should_transmit(nbytes);
        } else {
            queue_.append_uncopied(data, nbytes, source_free);
            // Replies to gets are sent together, after all received frames are handled.
            should_transmit = head.what != kind::data;
        }
        if (with_flush) {
            flush_number = number;
            queue_.append({.what = kind::flush, .number = number});
        }
        publish_queued();
    }
    if (should_transmit && !writer_.is_full()) {
        transmit();
    }
    return flush_number;
}

bool connection::send_puts(const coalescer &puts, std::uint64_t num,
                           std::atomic<std::uint64_t> &num_puts) {
    std::lock_guard const guard(queue_mutex_);
    num_puts.fetch_add(num, std::memory_order_release);
    if (!has_failed(current_state())) {
        queue_.append_puts(puts);
    }
    publish_queued();
    return queue_.is_long() && !writer_.is_full();
}

/// Takes all queued data for writing. False: there is nothing to write.
bool connection::take_queued() {
    std::lock_guard const guard(queue_mutex_);
    if (current_state() == state::connected) {
        writer_.take(queue_);
    }
    publish();
    return writer_.has_unsent(stream_) && is_open(current_state());
}

bool connection::write_some() {
    bool moved = false;
    writer_.begin();
    while (!writer_.is_full() && take_queued()) {
        ssize_t const written = writer_.write(stream_);
        if (written < 0 && !is_transient(errno)) {
            std::string why = describe_failure(errno);
            std::lock_guard const guard(queue_mutex_);
            lose_stream(std::move(why));
            break;
        }
        moved = moved || written > 0;
    }
    writer_.publish(stream_);
    return moved;
}

bool connection::transmit() {
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

void connection::lose_stream(std::string why) {
    if (current_state() == state::yielded || current_state() == state::accepted) {
        writer_.discard(stream_);
        change_to(state::ended);
        publish();
    } else {
        fail(std::move(why));
    }
}

void connection::end_of_stream(std::string why) {
    std::scoped_lock const guard(write_mutex_, queue_mutex_);
    lose_stream(std::move(why));
}

void connection::fail(std::string why) {
    if (has_failed(current_state())) {
        return;
    }
    why_ = std::move(why);
    change_to(state::broken);
    writer_.discard(stream_);
    queue_.discard();
    publish();
}

void connection::disconnect(std::string why) {
    std::scoped_lock const guard(write_mutex_, queue_mutex_);
    fail(std::move(why));
}

std::string connection::failure_reason() {
    std::lock_guard const guard(queue_mutex_);
    return why_;
}

std::string connection::describe_path() {
    std::lock_guard const guard(write_mutex_);
    if (stream_.fd() < 0) {
        return "not connected";
    }
    return peer_address_of(stream_.fd()) + (stream_.sealed() != nullptr ? ", encrypted" : "");
}

} // namespace diomp::transport::tcp
