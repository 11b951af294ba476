// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/frame_receiver.h"

#include "transport/tcp/connection.h"

#include <cerrno>
#include <cstring>

namespace diomp::transport::tcp {
namespace {

constexpr std::size_t buffer_bytes = 16 * 1024;
constexpr std::size_t large_body_bytes = 64 * 1024;
constexpr std::size_t max_after_large_body = 1024;
/// Bytes read from one connection before other connections get their turn.
constexpr std::size_t max_read_at_once = std::size_t{1} << 20;

std::string describe_end(ssize_t got, int code) {
    if (got == 0) {
        return "the connection has been closed";
    }
    return code == EBADMSG ? "bytes of the encrypted connection were changed, removed or added "
                             "in transit"
                           : describe_failure(code);
}

} // namespace

bool frame_receiver::receive(frame_handler &handler) {
    std::unique_lock const guard(mutex_, std::try_to_lock);
    if (!guard.owns_lock() || !is_open(conn_.current_state())) {
        return false;
    }
    if (buffer_ == nullptr) {
        buffer_ = std::make_unique_for_overwrite<std::byte[]>(buffer_bytes);
    }
    return read_some(handler);
}

/// Bytes after a body are read in the same call: often a flush, which then costs no further call.
/// After a large body the next large one often follows, whose beginning would be copied twice.
std::size_t frame_receiver::space_after_body() const {
    std::size_t const space = buffer_bytes - end_;
    bool const is_large = current_ && body_bytes(*current_) >= large_body_bytes;
    return is_large ? std::min(space, max_after_large_body) : space;
}

bool frame_receiver::read_some(frame_handler &handler) {
    std::size_t num_read = 0;
    // Records that were read and not opened must be opened now: epoll reports only the socket.
    while (num_read < max_read_at_once || !stream_.is_drained()) {
        // The buffer is empty while a body is being received.
        std::size_t const missing = current_ ? body_bytes(*current_) - num_body_ : 0;
        std::size_t const after = space_after_body();
        ssize_t const got =
            stream_.receive({missing > 0 ? body_ + num_body_ : nullptr, missing},
                            {buffer_.get() + end_, after}, num_read < max_read_at_once);
        if (got <= 0) {
            if (got == 0 || !is_transient(errno)) {
                conn_.end_of_stream(describe_end(got, errno));
            }
            break;
        }
        auto const num_received = static_cast<std::size_t>(got);
        auto const num_in_body = std::min(num_received, missing);
        num_read += num_received;
        num_body_ += num_in_body;
        end_ += num_received - num_in_body;
        if ((missing > 0 && !end_frame(handler)) || !parse(handler)) {
            conn_.disconnect("it has sent an invalid frame");
            break;
        }
        if (num_received < missing + after && stream_.is_drained()) {
            break;
        }
    }
    return num_read > 0;
}

/// True if the buffer holds a frame and the header part that precedes its body.
bool frame_receiver::has_header() const {
    std::size_t const available = end_ - begin_;
    if (available < sizeof(frame)) {
        return false;
    }
    frame head;
    std::memcpy(&head, buffer_.get() + begin_, sizeof(head));
    return head.head > max_am_long_header_bytes || available >= sizeof(frame) + head.head;
}

bool frame_receiver::parse(frame_handler &handler) {
    while (has_header()) {
        if (conn_.target() == nullptr || !begin_frame(handler)) {
            return false;
        }
    }
    if (begin_ == end_) {
        begin_ = end_ = 0;
    } else if (begin_ > 0) {
        std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    return true;
}

/// Parses a frame at begin_ and takes the bytes of its body that have arrived.
bool frame_receiver::begin_frame(frame_handler &handler) {
    current_.emplace();
    std::memcpy(&*current_, buffer_.get() + begin_, sizeof(frame));
    begin_ += sizeof(frame);
    if (current_->head > front_.size()) {
        return false;
    }
    std::memcpy(front_.data(), buffer_.get() + begin_, current_->head);
    begin_ += current_->head;
    num_body_ = 0;
    body_ = nullptr;
    if (std::size_t const nbytes = body_bytes(*current_); nbytes > 0) {
        body_ = handler.find_body_buffer(conn_, *current_, {front_.data(), current_->head});
        if (body_ == nullptr) {
            return false;
        }
        num_body_ = std::min(nbytes, end_ - begin_);
        std::memcpy(body_, buffer_.get() + begin_, num_body_);
        begin_ += num_body_;
    }
    return end_frame(handler);
}

bool frame_receiver::end_frame(frame_handler &handler) {
    if (num_body_ < body_bytes(*current_)) {
        return true;
    }
    frame const head = *current_;
    current_.reset();
    return handler.handle_frame(conn_, head, {front_.data(), head.head}, body_);
}

void frame_receiver::discard() {
    begin_ = end_ = 0;
    current_.reset();
    body_ = nullptr;
    num_body_ = 0;
    buffer_.reset();
    scratch_ = {};
}

void frame_receiver::revoke_body_buffer(const std::byte *buffer) {
    std::lock_guard const guard(mutex_);
    if (current_ && body_ == buffer) {
        std::byte *const discarded_body = scratch(body_bytes(*current_));
        std::memcpy(discarded_body, body_, num_body_);
        body_ = discarded_body;
    }
}

} // namespace diomp::transport::tcp
