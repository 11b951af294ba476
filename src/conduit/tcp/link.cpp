// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/tcp/link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace diomp::conduit::tcp {
namespace {

constexpr std::size_t buffer_bytes = 16 * 1024;
/// What gathers beyond this leaves at once.
constexpr std::size_t most_gathered = 16 * 1024;
/// Of one connection before others are looked at.
constexpr std::size_t most_read_at_once = std::size_t{1} << 20;
constexpr std::size_t most_pieces_at_once = 32;
/// What has left is forgotten when it is so much, though more has gathered behind it.
constexpr std::size_t most_gone = 64 * 1024;

bool is_momentary(int code) { return code == EAGAIN || code == EWOULDBLOCK || code == EINTR; }

const std::byte *bytes_of(const void *object) { return static_cast<const std::byte *>(object); }

} // namespace

link::link(unique_fd fd, peer &target, const greeting &first)
    : fd_(std::move(fd)), target_(&target) {
    append(&first, sizeof(first));
    count_waiting();
}

// Inlined, gcc 12 takes the vector's growth for an overflow.
[[gnu::noinline]] void link::append(const void *bytes, std::size_t nbytes) {
    gathered_.insert(gathered_.end(), bytes_of(bytes), bytes_of(bytes) + nbytes);
}

void link::count_waiting() {
    std::size_t const gathered = gathered_.size() - num_gone_;
    num_copied_.store(queued_copies_ + gathered, std::memory_order_relaxed);
    std::size_t const num_pieces = queue_.size() + (gathered > 0 ? 1 : 0);
    num_waiting_.store(num_pieces, std::memory_order_release);
    bool const is_unsettled = num_pieces > 0 || (condition() != state::good && !is_buried());
    if (unsettled_ != nullptr && is_unsettled != is_counted_) {
        is_counted_ = is_unsettled;
        unsettled_->fetch_add(is_unsettled ? 1 : -1, std::memory_order_release);
    }
}

void link::count_in(std::atomic<int> &unsettled) {
    std::lock_guard const guard(send_mutex_);
    unsettled_ = &unsettled;
    count_waiting();
}

bool link::bury() {
    std::lock_guard const guard(send_mutex_);
    if (is_buried_.exchange(true, std::memory_order_release)) {
        return false;
    }
    count_waiting();
    return true;
}

/// What has gathered becomes a piece, so that something that is not copied can follow it.
void link::set_aside() {
    if (gathered_.size() == num_gone_) {
        return;
    }
    piece next;
    next.copy = std::move(gathered_);
    next.data = next.copy.data() + num_gone_;
    next.left = next.copy.size() - num_gone_;
    queued_copies_ += next.left;
    queue_.push_back(std::move(next));
    gathered_ = {};
    num_gone_ = 0;
}

void link::send(const frame &head, const void *data, std::size_t nbytes, completion *source_free) {
    send(head, {}, data, nbytes, source_free);
}

void link::send(const frame &head, std::span<const std::byte> front, const void *data,
                std::size_t nbytes, completion *source_free) {
    std::lock_guard const guard(send_mutex_);
    if (condition() == state::broken) {
        return;
    }
    append(&head, sizeof(head));
    append(front.data(), front.size());
    if (nbytes <= most_copied) {
        append(data, nbytes);
        if (gathered_.size() - num_gone_ >= most_gathered && !is_full_) {
            write_some();
        }
        count_waiting();
        return;
    }
    set_aside();
    if (source_free != nullptr) {
        source_free->begin();
    }
    queue_.push_back({{}, bytes_of(data), nbytes, source_free});
    write_some();
    count_waiting();
}

/// Forgets what has left.
void link::consume(std::size_t nbytes) {
    is_open_.store(true, std::memory_order_relaxed);
    while (nbytes > 0 && !queue_.empty()) {
        piece &front = queue_.front();
        std::size_t const gone = std::min(nbytes, front.left);
        front.data += gone;
        front.left -= gone;
        nbytes -= gone;
        queued_copies_ -= front.copy.empty() ? 0 : gone;
        if (front.left > 0) {
            return;
        }
        if (front.source_free != nullptr) {
            front.source_free->end();
        }
        queue_.pop_front();
    }
    num_gone_ += nbytes;
    if (num_gone_ == gathered_.size()) {
        gathered_.clear();
        num_gone_ = 0;
    } else if (num_gone_ > most_gone) {
        gathered_.erase(gathered_.begin(),
                        gathered_.begin() + static_cast<std::ptrdiff_t>(num_gone_));
        num_gone_ = 0;
    }
}

bool link::write_some() {
    bool moved = false;
    is_full_ = false;
    for (;;) {
        std::array<iovec, most_pieces_at_once> parts;
        std::size_t num_parts = 0;
        std::size_t wanted = 0;
        auto const add = [&](const std::byte *data, std::size_t nbytes) {
            parts[num_parts++] = {const_cast<std::byte *>(data), nbytes};
            wanted += nbytes;
        };
        for (piece const &each : queue_) {
            if (num_parts == parts.size() - 1) {
                break;
            }
            add(each.data, each.left);
        }
        if (num_parts == queue_.size() && gathered_.size() > num_gone_) {
            add(gathered_.data() + num_gone_, gathered_.size() - num_gone_);
        }
        if (num_parts == 0 || condition() != state::good) {
            return moved;
        }
        msghdr message{};
        message.msg_iov = parts.data();
        message.msg_iovlen = num_parts;
        ssize_t const written = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (written < 0 && !is_momentary(errno)) {
            fail(::strerrordesc_np(errno));
            return moved;
        }
        if (written > 0) {
            moved = true;
            consume(static_cast<std::size_t>(written));
        }
        if (written < static_cast<ssize_t>(wanted)) {
            is_full_ = true;
            return moved;
        }
    }
}

bool link::ship() {
    std::unique_lock const guard(send_mutex_, std::try_to_lock);
    if (!guard.owns_lock()) {
        return false;
    }
    bool const moved = write_some();
    count_waiting();
    return moved;
}

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

bool link::read_some(frame_taker &taker) {
    std::size_t num_read = 0;
    while (num_read < most_read_at_once) {
        bool const is_straight = current_.has_value(); // the buffer is empty then
        std::size_t const room =
            is_straight ? body_bytes(*current_) - num_body_ : buffer_bytes - end_;
        std::byte *const to = is_straight ? body_ + num_body_ : buffer_.get() + end_;
        ssize_t const got = ::recv(fd_.get(), to, room, MSG_DONTWAIT);
        if (got <= 0) {
            if (got == 0 || !is_momentary(errno)) {
                std::lock_guard const guard(send_mutex_);
                fail(got == 0 ? "the connection has been closed" : ::strerrordesc_np(errno));
            }
            break;
        }
        is_open_.store(true, std::memory_order_relaxed);
        num_read += static_cast<std::size_t>(got);
        (is_straight ? num_body_ : end_) += static_cast<std::size_t>(got);
        if (!(is_straight ? end_frame(taker) : parse(taker))) {
            break_off("it sends what no rank of this job would");
            break;
        }
        if (static_cast<std::size_t>(got) < room) {
            break;
        }
    }
    return num_read > 0;
}

bool link::parse(frame_taker &taker) {
    if (awaits_greeting_ && !parse_greeting(taker)) {
        return false;
    }
    while (!awaits_greeting_ && end_ - begin_ >= sizeof(frame)) {
        if (!begin_frame(taker)) {
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

bool link::parse_greeting(frame_taker &taker) {
    greeting from;
    if (end_ - begin_ < sizeof(from)) {
        return true;
    }
    std::memcpy(&from, buffer_.get() + begin_, sizeof(from));
    begin_ += sizeof(from);
    awaits_greeting_ = false;
    return taker.greet(*this, from);
}

/// With a frame's head in the buffer: takes it, and what is there of its body.
bool link::begin_frame(frame_taker &taker) {
    current_.emplace();
    std::memcpy(&*current_, buffer_.get() + begin_, sizeof(frame));
    begin_ += sizeof(frame);
    num_body_ = 0;
    body_ = nullptr;
    if (std::size_t const nbytes = body_bytes(*current_); nbytes > 0) {
        body_ = taker.place_body(*this, *current_);
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
    return taker.take(*this, head, body_);
}

/// Under send_mutex_.
void link::fail(std::string why) {
    if (condition() == state::broken) {
        return;
    }
    why_ = std::move(why);
    if (!is_open()) { // of those that were accepted something has come
        state_.store(state::unopened, std::memory_order_release);
        count_waiting();
        return;
    }
    state_.store(state::broken, std::memory_order_release);
    for (piece const &each : queue_) {
        if (each.source_free != nullptr) {
            each.source_free->end(OMPX_ERR_PEER);
        }
    }
    queue_.clear();
    gathered_.clear();
    num_gone_ = queued_copies_ = 0;
    count_waiting();
}

void link::break_off(std::string why) {
    std::lock_guard const guard(send_mutex_);
    is_open_.store(true, std::memory_order_relaxed); // no other address
    fail(std::move(why));
}

void link::give_up_opening() {
    std::lock_guard const guard(send_mutex_);
    if (condition() == state::good && !is_open()) {
        fail("no answer");
    }
}

std::string link::what_is_wrong() {
    std::lock_guard const guard(send_mutex_);
    return why_;
}

void link::start_again(unique_fd fd) {
    std::scoped_lock const guard(receive_mutex_, send_mutex_);
    fd_ = std::move(fd);
    opening_since = std::chrono::steady_clock::now();
    is_watched_for_room = false;
    state_.store(state::good, std::memory_order_release);
    count_waiting();
}

} // namespace diomp::conduit::tcp
