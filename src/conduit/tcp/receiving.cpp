// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a connection takes what comes apart. Declared in link.h.
#include "conduit/tcp/link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>

namespace diomp::conduit::tcp {
namespace {

constexpr std::size_t buffer_bytes = 16 * 1024;
constexpr std::size_t large_body_bytes = 64 * 1024;
constexpr std::size_t most_behind_large = 1024;
/// Of one connection before others are looked at.
constexpr std::size_t most_read_at_once = std::size_t{1} << 20;

} // namespace

bool link::receive(frame_taker &taker) {
    std::unique_lock const guard(receive_mutex_, std::try_to_lock);
    if (!guard.owns_lock() || condition() != state::good) {
        return false;
    }
    if (buffer_ == nullptr) {
        buffer_ = std::make_unique_for_overwrite<std::byte[]>(buffer_bytes);
    }
    return read_some(taker);
}

/// What follows a body comes with the end of it: often a flush, which should not cost a call more.
/// Behind a large one it is often the next large one, whose begin should not be copied twice.
std::size_t link::room_behind_body() const {
    std::size_t const room = buffer_bytes - end_;
    bool const is_large = current_ && body_bytes(*current_) >= large_body_bytes;
    return is_large ? std::min(room, most_behind_large) : room;
}

ssize_t link::read_into(std::byte *body, std::size_t missing, bool may_receive) {
    std::byte *const rest = buffer_.get() + end_;
    if (missing == 0 && sealed_ == nullptr) {
        return ::recv(fd_.get(), rest, buffer_bytes - end_, MSG_DONTWAIT);
    }
    std::array<iovec, 2> parts{{{body, missing}, {rest, room_behind_body()}}};
    if (sealed_ != nullptr) {
        return sealed_->receive(fd_.get(), parts, may_receive);
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    return ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
}

std::string link::describe_end(ssize_t got, int code) const {
    if (got == 0) {
        return "the connection has been closed";
    }
    return code == EBADMSG ? "bytes of the encrypted connection were changed, left out or added "
                             "on their way"
                           : ::strerrordesc_np(code);
}

bool link::read_some(frame_taker &taker) {
    std::size_t num_read = 0;
    // What has been read and not opened would wait unseen: the socket does not announce it again.
    while (num_read < most_read_at_once || !is_drained()) {
        // While a body is coming the buffer is empty.
        std::size_t const missing = current_ ? body_bytes(*current_) - num_body_ : 0;
        std::size_t const room = missing + room_behind_body();
        ssize_t const got = read_into(missing > 0 ? body_ + num_body_ : nullptr, missing,
                                      num_read < most_read_at_once);
        if (got <= 0) {
            if (got == 0 || !is_momentary(errno)) {
                std::string why = describe_end(got, errno);
                std::scoped_lock const guard(write_mutex_, gather_mutex_);
                fail(std::move(why));
            }
            break;
        }
        auto const num_got = static_cast<std::size_t>(got);
        auto const num_in_body = std::min(num_got, missing);
        num_read += num_got;
        num_body_ += num_in_body;
        end_ += num_got - num_in_body;
        if ((missing > 0 && !end_frame(taker)) || !parse(taker)) {
            break_off("it sends what no rank of this job would");
            break;
        }
        if (num_got < room && is_drained()) {
            break;
        }
    }
    return num_read > 0;
}

/// What must be known of a frame before its body is in the buffer.
bool link::has_head() const {
    std::size_t const there = end_ - begin_;
    if (there < sizeof(frame)) {
        return false;
    }
    frame head;
    std::memcpy(&head, buffer_.get() + begin_, sizeof(head));
    return head.head > most_bulk_head_bytes || there >= sizeof(frame) + head.head;
}

bool link::parse(frame_taker &taker) {
    while (has_head()) {
        if (target() == nullptr || !begin_frame(taker)) {
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

/// With a frame's head in the buffer: takes it, and what is there of its body.
bool link::begin_frame(frame_taker &taker) {
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
        body_ = taker.place_body(*this, *current_, {front_.data(), current_->head});
        if (body_ == nullptr) {
            return false;
        }
        num_body_ = std::min(nbytes, end_ - begin_);
        std::memcpy(body_, buffer_.get() + begin_, num_body_);
        begin_ += num_body_;
    }
    return end_frame(taker);
}

bool link::end_frame(frame_taker &taker) {
    if (num_body_ < body_bytes(*current_)) {
        return true;
    }
    frame const head = *current_;
    current_.reset();
    return taker.take(*this, head, {front_.data(), head.head}, body_);
}

void link::divert(const std::byte *place) {
    std::lock_guard const guard(receive_mutex_);
    if (current_ && body_ == place) {
        std::byte *const elsewhere = scratch(body_bytes(*current_));
        std::memcpy(elsewhere, body_, num_body_);
        body_ = elsewhere;
    }
}

} // namespace diomp::conduit::tcp
