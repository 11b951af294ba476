// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/common/idle_waiters.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace diomp::transport {
namespace {

constexpr std::chrono::microseconds max_blind_sleep{1000};

} // namespace

status idle_waiters::start(int event_fd) {
    event_fd_ = event_fd;
    wake_event_ = unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return wake_event_.valid() ? status{} : system_error("eventfd", errno);
}

bool idle_waiters::wait(std::chrono::microseconds limit, function_ref<bool()> is_over) {
    if (event_fd_ < 0) {
        return false;
    }
    // The descriptor of UCX stays readable until a new connection is accepted. If it ended every
    // idle wait, the wait would be a busy loop, so after a spurious wakeup the next idle wait does
    // not poll the descriptor, and is short.
    bool const polls_network = !had_spurious_wakeup_.exchange(false, std::memory_order_relaxed);
    if (!polls_network) {
        limit = std::min(limit, max_blind_sleep);
    }
    num_waiting_.fetch_add(1, std::memory_order_seq_cst);
    if (!is_over() && arm()) {
        pollfd watched[2] = {{wake_event_.get(), POLLIN, 0}, {event_fd_, POLLIN, 0}};
        auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
        timespec const longest{seconds.count(), std::chrono::nanoseconds(limit - seconds).count()};
        pollers_.begin_sleep();
        int const num_ready = ::ppoll(watched, polls_network ? 2 : 1, &longest, nullptr);
        pollers_.end_sleep();
        if (num_ready > 0) {
            if ((watched[0].revents & POLLIN) != 0) {
                std::uint64_t count = 0;
                [[maybe_unused]] auto const taken =
                    ::read(wake_event_.get(), &count, sizeof(count));
            } else {
                // until there is progress
                had_spurious_wakeup_.store(true, std::memory_order_relaxed);
            }
        }
    }
    num_waiting_.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

void idle_waiters::signal_event() const {
    std::uint64_t const one = 1;
    [[maybe_unused]] auto const written = ::write(wake_event_.get(), &one, sizeof(one));
}

} // namespace diomp::transport
