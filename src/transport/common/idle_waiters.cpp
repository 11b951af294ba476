// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/common/idle_waiters.h"

#include "base/unique_fd.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace diomp::transport {
namespace {

constexpr std::chrono::microseconds max_blind_sleep{1000};

/// -1: the process has no descriptor left.
int own_event() {
    static thread_local unique_fd event;
    if (!event.valid()) {
        event = unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    }
    return event.get();
}

} // namespace

idle_waiters::waiting_thread::waiting_thread(idle_waiters &in, int event) : in_(in), event_(event) {
    std::lock_guard const guard(in_.events_mutex_);
    in_.events_.push_back(event_);
    in_.num_waiting_.fetch_add(1, std::memory_order_seq_cst);
}

idle_waiters::waiting_thread::~waiting_thread() {
    std::lock_guard const guard(in_.events_mutex_);
    in_.num_waiting_.fetch_sub(1, std::memory_order_relaxed);
    in_.events_.erase(std::ranges::find(in_.events_, event_));
}

bool idle_waiters::wait(std::chrono::microseconds limit, function_ref<bool()> is_over) {
    if (event_fd_ < 0) {
        return false;
    }
    // The descriptor of UCX stays readable until a new connection is accepted. If it ended every
    // idle wait, the wait would be a busy loop, so after a spurious wakeup the next idle wait does
    // not poll the descriptor, and is short.
    bool const polls_network = !had_spurious_wakeup_.exchange(false, std::memory_order_relaxed);
    int const event = own_event();
    if (!polls_network || event < 0) {
        limit = std::min(limit, max_blind_sleep);
    }
    waiting_thread const here(*this, event);
    if (!is_over() && arm()) {
        pollfd watched[2] = {{event, POLLIN, 0}, {event_fd_, POLLIN, 0}};
        auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
        timespec const longest{seconds.count(), std::chrono::nanoseconds(limit - seconds).count()};
        pollers_.begin_sleep();
        int const num_ready = ::ppoll(watched, polls_network ? 2 : 1, &longest, nullptr);
        pollers_.end_sleep();
        if (num_ready > 0) {
            if ((watched[0].revents & POLLIN) != 0) {
                std::uint64_t count = 0;
                [[maybe_unused]] auto const taken = ::read(event, &count, sizeof(count));
            } else {
                // until there is progress
                had_spurious_wakeup_.store(true, std::memory_order_relaxed);
            }
        }
    }
    return true;
}

void idle_waiters::wake_all() {
    std::uint64_t const one = 1;
    std::lock_guard const guard(events_mutex_);
    for (int const event : events_) {
        [[maybe_unused]] auto const written = ::write(event, &one, sizeof(one));
    }
}

} // namespace diomp::transport
