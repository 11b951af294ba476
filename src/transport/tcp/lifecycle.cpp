// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/assert.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/peer.h"

namespace diomp::transport::tcp {

bool lifecycle::open(unique_fd fd, std::unique_ptr<sealed_stream> sealed) {
    std::scoped_lock const guard(conn_.write_mutex_, conn_.queue_mutex_);
    if (conn_.current_state() != state::opening) {
        return false;
    }
    conn_.stream_ = byte_stream(std::move(fd), std::move(sealed));
    DIOMP_ASSERT(conn_.stream_.fd() >= 0, "an open connection has a socket");
    conn_.change_to(state::deferred);
    return true;
}

bool lifecycle::confirm() {
    {
        std::lock_guard const guard(conn_.queue_mutex_);
        if (conn_.current_state() != state::deferred && conn_.current_state() != state::accepted) {
            return false;
        }
        conn_.change_to(state::connected);
        conn_.publish_queued();
    }
    conn_.transmit();
    return true;
}

bool lifecycle::adopt(unique_fd fd, std::unique_ptr<sealed_stream> sealed) {
    {
        auto const reading = conn_.incoming_.lock();
        std::scoped_lock const guard(conn_.write_mutex_, conn_.queue_mutex_);
        // A peer opens another socket after the reply to its request, and after it has given up an
        // earlier one, not before.
        if (!may_be_replaced(conn_.current_state()) ||
            (conn_.current_state() == state::yielded && conn_.writer_.has_unsent(conn_.stream_)) ||
            (conn_.current_state() == state::accepted && !is_closed_by_peer(conn_.stream_.fd()))) {
            return false;
        }
        replace_stream(byte_stream(std::move(fd), std::move(sealed)));
        conn_.change_to(state::accepted);
        append_last({.what = kind::conn_ack, .number = 1});
        conn_.publish();
    }
    conn_.transmit();
    return true;
}

bool lifecycle::reuse(unique_fd fd) {
    auto const reading = conn_.incoming_.lock();
    std::scoped_lock const guard(conn_.write_mutex_, conn_.queue_mutex_);
    if (conn_.target_ != nullptr || conn_.current_state() != state::closed) {
        return false;
    }
    replace_stream(byte_stream(std::move(fd), nullptr));
    conn_.change_to(state::redundant);
    return true;
}

bool lifecycle::is_idle() const {
    return conn_.queue_.empty() && !conn_.writer_.has_unsent(conn_.stream_);
}

void lifecycle::append_last(const frame &head) {
    send_queue only;
    only.append(head);
    conn_.writer_.take(only);
}

bool lifecycle::change(state from, state to) {
    std::scoped_lock const guard(conn_.write_mutex_, conn_.queue_mutex_);
    if (conn_.current_state() != from) {
        return false;
    }
    conn_.change_to(to);
    conn_.publish();
    return true;
}

void lifecycle::replace_stream(byte_stream &&next) {
    conn_.incoming_.discard();
    // Nothing but a reply or an acknowledgement that the peer does not wait for.
    conn_.writer_.discard(conn_.stream_);
    conn_.stream_ = std::move(next);
    conn_.is_watched_for_write_.store(false, std::memory_order_relaxed);
}

bool lifecycle::request_close() {
    {
        std::scoped_lock const guard(conn_.write_mutex_, conn_.queue_mutex_);
        if (conn_.current_state() != state::connected || !is_idle()) {
            return false;
        }
        append_last({.what = kind::close_request, .number = conn_.target_->take_handled_bytes()});
        conn_.change_to(state::closing);
        conn_.publish();
    }
    conn_.transmit();
    return true;
}

bool lifecycle::reply_to_close(bool is_lower, bool may_close) {
    {
        std::scoped_lock const guard(conn_.write_mutex_, conn_.queue_mutex_);
        if (conn_.current_state() == state::closing && is_lower) {
            return true; // the peer drops its request when it receives this rank's
        }
        if (conn_.current_state() != state::connected && conn_.current_state() != state::closing) {
            return false;
        }
        if (may_close && is_idle()) {
            append_last({.what = kind::close_ack, .number = conn_.target_->take_handled_bytes()});
            conn_.change_to(state::yielded);
        } else {
            conn_.queue_.append({.what = kind::close_nack});
            if (conn_.current_state() == state::closing) {
                conn_.change_to(state::connected);
            }
        }
        conn_.publish();
    }
    conn_.transmit();
    return true;
}

bool lifecycle::release() {
    auto const reading = conn_.incoming_.lock();
    std::scoped_lock const guard(conn_.write_mutex_, conn_.queue_mutex_);
    if (conn_.current_state() != state::ended) {
        return false;
    }
    replace_stream({});
    conn_.change_to(state::dormant);
    conn_.publish();
    return true;
}

bool lifecycle::end_close() { return change(state::closing, state::ended); }

bool lifecycle::reopen() { return change(state::dormant, state::opening); }

bool lifecycle::mark_closed() { return change(state::broken, state::closed); }

bool lifecycle::resume() {
    if (!change(state::closing, state::connected)) {
        return false;
    }
    conn_.transmit();
    return true;
}

} // namespace diomp::transport::tcp
