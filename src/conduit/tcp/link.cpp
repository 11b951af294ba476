// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/tcp/link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <sys/socket.h>
#include <utility>

namespace diomp::conduit::tcp {
namespace {

/// Instead of most_gathered, with a large put at the end: its flush may be next, and leave with it.
constexpr std::size_t most_gathered_before_flush = 256 * 1024;
constexpr std::size_t most_pieces_at_once = 32;

const std::byte *bytes_of(const void *object) { return static_cast<const std::byte *>(object); }

} // namespace

void link::count_gathered() {
    num_gathered_copies_.store(queued_copies_ + gathered_.size(), std::memory_order_relaxed);
    bool const has_any = !is_held_ && (!queue_.empty() || !gathered_.empty());
    has_gathered_.store(has_any, std::memory_order_release);
    if (unsettled_ != nullptr && (has_any || has_nested()) && !is_counted_) {
        is_counted_ = true;
        unsettled_->fetch_add(1, std::memory_order_release);
    }
}

void link::count_leaving() {
    num_leaving_copies_.store(leaving_copies_, std::memory_order_relaxed);
    has_leaving_.store(has_unsent(), std::memory_order_release);
}

void link::settle() {
    count_gathered();
    count_leaving();
    bool const is_unsettled = has_gathered_.load(std::memory_order_relaxed) || has_nested() ||
                              has_unsent() || (condition() == state::broken && !is_buried());
    if (unsettled_ != nullptr && is_unsettled != is_counted_) {
        is_counted_ = is_unsettled;
        unsettled_->fetch_add(is_unsettled ? 1 : -1, std::memory_order_release);
    }
}

void link::count_in(std::atomic<int> &unsettled) {
    std::scoped_lock const guard(write_mutex_, gather_mutex_);
    unsettled_ = &unsettled;
    settle();
}

bool link::bury() {
    std::scoped_lock const guard(write_mutex_, gather_mutex_);
    if (is_buried_.exchange(true, std::memory_order_release)) {
        return false;
    }
    settle();
    return true;
}

/// What has gathered becomes a piece, so that something that is not copied can follow it.
void link::set_aside(std::vector<std::byte> &&next_buffer) {
    if (gathered_.empty()) {
        return;
    }
    piece next;
    next.copy = gathered_.take(std::move(next_buffer));
    next.data = next.copy.data();
    next.left = next.copy.size();
    queued_copies_ += next.left;
    queue_.push_back(std::move(next));
}

void link::send(const frame &head, const void *data, std::size_t nbytes, completion *source_free) {
    send(head, {}, data, nbytes, source_free);
}

void link::send(const frame &head, std::span<const std::byte> front, const void *data,
                std::size_t nbytes, completion *source_free) {
    send_in_order(head, front, data, nbytes, source_free, nullptr, false);
}

std::uint64_t link::send_put(const frame &head, const void *data, completion &source_free,
                             std::atomic<std::uint64_t> &num_puts, bool brings_flush) {
    if (!brings_flush && head.nbytes <= most_nested && is_shared()) {
        nest_put(head, data, num_puts);
        return 0;
    }
    return send_in_order(head, {}, data, head.nbytes, &source_free, &num_puts, brings_flush);
}

std::uint64_t link::send_in_order(const frame &head, std::span<const std::byte> front,
                                  const void *data, std::size_t nbytes, completion *source_free,
                                  std::atomic<std::uint64_t> *num_puts, bool brings_flush) {
    bool is_enough = false;
    std::uint64_t asked = 0;
    {
        std::unique_lock guard(gather_mutex_);
        if (link *const next = successor_.load(std::memory_order_relaxed); next != nullptr) {
            guard.unlock();
            return next->send_in_order(head, front, data, nbytes, source_free, num_puts,
                                       brings_flush);
        }
        std::uint64_t const number =
            num_puts != nullptr ? num_puts->fetch_add(1, std::memory_order_release) + 1 : 0;
        if (condition() == state::broken) {
            return 0;
        }
        bool const copies = !brings_flush && is_copied(head.what, nbytes);
        if (copies && num_puts != nullptr) {
            gathered_.append_put(head, data, most_copied_of_puts);
        } else {
            gathered_.append(&head, sizeof(head));
            gathered_.append(front.data(), front.size());
            gathered_.append(data, copies ? nbytes : 0);
        }
        if (copies) {
            is_enough = gathered_.size() >=
                        (nbytes > most_copied ? most_gathered_before_flush : most_gathered);
        } else {
            set_aside({});
            if (source_free != nullptr) {
                source_free->begin();
            }
            queue_.push_back({{}, bytes_of(data), nbytes, source_free});
            // Answers leave together, when all that has come has been read.
            is_enough = head.what != kind::data;
        }
        if (brings_flush) {
            asked = number;
            frame const flush{.what = kind::flush, .number = number};
            gathered_.append(&flush, sizeof(flush));
        }
        count_gathered();
    }
    if (is_enough && !is_full_.load(std::memory_order_relaxed)) {
        ship();
    }
    return asked;
}

/// Forgets what has left.
void link::consume(std::size_t nbytes) {
    while (nbytes > 0) {
        piece &front = leaving_.front();
        std::size_t const gone = std::min(nbytes, front.left);
        front.data += gone;
        front.left -= gone;
        nbytes -= gone;
        leaving_copies_ -= front.copy.empty() ? 0 : gone;
        if (front.left > 0) {
            return;
        }
        if (front.source_free != nullptr) {
            front.source_free->end();
        }
        if (front.copy.capacity() > spare_.capacity()) {
            spare_ = std::move(front.copy);
            spare_.clear();
        }
        leaving_.pop_front();
    }
}

/// False if nothing waits.
bool link::take_gathered() {
    std::lock_guard const guard(gather_mutex_);
    if (!is_held_ && leaving_.size() < most_pieces_at_once) {
        if (!gathered_.empty()) {
            set_aside(std::move(spare_));
            spare_ = {};
        }
        std::ranges::move(queue_, std::back_inserter(leaving_));
        queue_.clear();
        leaving_copies_ += std::exchange(queued_copies_, 0);
    }
    settle();
    return has_unsent() && condition() == state::good;
}

/// As ::send, with the first pieces of what is leaving. `is_all`: no part of them is left.
ssize_t link::write_pieces(bool &is_all) {
    std::array<iovec, most_pieces_at_once> parts;
    std::size_t num_parts = 0;
    std::size_t wanted = 0;
    for (piece const &each : leaving_) {
        if (num_parts == parts.size()) {
            break;
        }
        parts[num_parts++] = {const_cast<std::byte *>(each.data), each.left};
        wanted += each.left;
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = num_parts;
    ssize_t const written = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (written > 0) {
        consume(static_cast<std::size_t>(written));
    }
    is_all = written == static_cast<ssize_t>(wanted);
    return written;
}

/// The same with a record of them, or a few short ones.
ssize_t link::write_sealed(bool &is_all) {
    if (!sealed_->has_unsent()) {
        while (!leaving_.empty() && sealed_->has_space()) {
            piece const &front = leaving_.front();
            consume(sealed_->seal({front.data, front.left}));
        }
    }
    ssize_t const written = sealed_->send_some(fd_.get());
    is_all = !sealed_->has_unsent();
    return written;
}

bool link::write_some() {
    bool moved = false;
    is_full_.store(false, std::memory_order_relaxed);
    last_writer_.store(::pthread_self(), std::memory_order_relaxed);
    while (take_gathered()) {
        bool is_all = false;
        ssize_t const written = sealed_ == nullptr ? write_pieces(is_all) : write_sealed(is_all);
        if (written < 0 && !is_momentary(errno)) {
            std::string why = ::strerrordesc_np(errno);
            std::lock_guard const guard(gather_mutex_);
            fail(std::move(why));
            break;
        }
        moved = moved || written > 0;
        if (!is_all) {
            is_full_.store(true, std::memory_order_relaxed);
            break;
        }
    }
    count_leaving();
    return moved;
}

bool link::ship() {
    if (link *const next = successor_.load(std::memory_order_acquire); next != nullptr) {
        return next->ship();
    }
    bool moved = false;
    // Whoever finds the lock taken leaves this word behind, which the other one reads after it.
    is_ship_wanted_.store(true, std::memory_order_seq_cst);
    while (is_ship_wanted_.load(std::memory_order_seq_cst)) {
        std::unique_lock const guard(write_mutex_, std::try_to_lock);
        if (!guard.owns_lock()) {
            return moved;
        }
        is_ship_wanted_.store(false, std::memory_order_seq_cst);
        moved = write_some() || moved;
    }
    return moved;
}

bool link::release() {
    {
        std::lock_guard const guard(gather_mutex_);
        if (!is_held_) {
            return false;
        }
        is_held_ = false;
        count_gathered();
    }
    ship();
    return true;
}

bool link::give_way_to(link &next) {
    {
        std::scoped_lock const guard(write_mutex_, gather_mutex_, next.gather_mutex_);
        if (!is_held_ || condition() == state::broken) {
            return false;
        }
        set_aside({});
        next.set_aside({});
        std::ranges::move(queue_, std::back_inserter(next.queue_));
        queue_.clear();
        next.queued_copies_ += std::exchange(queued_copies_, 0);
        why_ = "the other end has opened one, too";
        state_.store(state::broken, std::memory_order_release);
        is_buried_.store(true, std::memory_order_release);
        target_.store(nullptr, std::memory_order_release);
        successor_.store(&next, std::memory_order_release);
        ::shutdown(fd_.get(), SHUT_RDWR);
        settle();
        next.count_gathered();
    }
    collect_puts();
    next.ship();
    return true;
}

void link::fail(std::string why) {
    if (condition() == state::broken) {
        return;
    }
    why_ = std::move(why);
    state_.store(state::broken, std::memory_order_release);
    for (std::deque<piece> *const pieces : {&leaving_, &queue_}) {
        for (piece const &each : *pieces) {
            if (each.source_free != nullptr) {
                each.source_free->end(OMPX_ERR_PEER);
            }
        }
        pieces->clear();
    }
    gathered_.clear();
    queued_copies_ = leaving_copies_ = 0;
    if (sealed_ != nullptr) {
        sealed_->discard_unsent();
    }
    settle();
}

void link::break_off(std::string why) {
    std::scoped_lock const guard(write_mutex_, gather_mutex_);
    fail(std::move(why));
}

std::string link::what_is_wrong() {
    std::lock_guard const guard(gather_mutex_);
    return why_;
}

bool link::open(unique_fd fd, std::unique_ptr<sealed_stream> sealed) {
    std::scoped_lock const guard(receive_mutex_, write_mutex_, gather_mutex_);
    if (condition() != state::opening) {
        return false;
    }
    fd_ = std::move(fd);
    sealed_ = std::move(sealed);
    state_.store(state::good, std::memory_order_release);
    settle();
    return true;
}

} // namespace diomp::conduit::tcp
