// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sink.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace diomp::run {
namespace {

/// A pipe that polls as writable accepts at least one page without blocking.
constexpr std::size_t safe_write_bytes = 4096;

} // namespace

void sink::write(std::string_view text) {
    if (broken()) {
        return;
    }
    queue_ += text;
    if (registered_ == event_loop::token::none) {
        write_some();
    }
}

void sink::write_some() {
    bool const was_congested = congested();
    while (sent_ < queue_.size() && !broken()) {
        pollfd ready{fd_, POLLOUT, 0};
        if (poll(&ready, 1, 0) == 0) {
            break;
        }
        ssize_t const size =
            ::write(fd_, queue_.data() + sent_, std::min(queue_.size() - sent_, safe_write_bytes));
        if (size >= 0) {
            sent_ += static_cast<std::size_t>(size);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            error_ = errno; // EPIPE, or a full disk: the text is lost
        }
    }
    if (sent_ == queue_.size() || broken()) {
        queue_.clear();
        sent_ = 0;
        loop_.remove(registered_);
    } else {
        if (sent_ > high_water_bytes) {
            queue_.erase(0, sent_);
            sent_ = 0;
        }
        if (registered_ == event_loop::token::none) {
            auto added = loop_.add(fd_, EPOLLOUT, [this](std::uint32_t) { write_some(); });
            // Regular files, which epoll refuses, are always writable and never get here.
            registered_ = added ? added.value() : event_loop::token::none;
        }
    }
    if (on_change && (was_congested != congested() || broken())) {
        on_change();
    }
}

void sink::drain() {
    loop_.remove(registered_);
    while (sent_ < queue_.size()) {
        ssize_t const size = ::write(fd_, queue_.data() + sent_, queue_.size() - sent_);
        if (size >= 0) {
            sent_ += static_cast<std::size_t>(size);
        } else if (errno == EAGAIN) {
            pollfd ready{fd_, POLLOUT, 0};
            poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            error_ = errno;
            break;
        }
    }
    queue_.clear();
    sent_ = 0;
}

} // namespace diomp::run
