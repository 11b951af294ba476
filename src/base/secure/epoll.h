// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// epoll and timers for tables of connections.
#pragma once

#include "base/unique_fd.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace diomp::secure {

/// Adds or modifies an entry (EPOLL_CTL_ADD or EPOLL_CTL_MOD); false: errno is the reason.
inline bool epoll_update(int epoll, int operation, int descriptor, std::uint32_t events,
                         std::uint64_t tag) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag;
    return ::epoll_ctl(epoll, operation, descriptor, &event) == 0;
}

inline unique_fd make_timer() {
    return unique_fd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
}

/// Makes the timer readable at that time.
inline void set_timer(int timer, std::chrono::steady_clock::time_point when) {
    using namespace std::chrono;
    auto const left = std::max<steady_clock::duration>(when - steady_clock::now(), milliseconds(1));
    auto const whole = duration_cast<seconds>(left);
    itimerspec value{};
    value.it_value.tv_sec = whole.count();
    value.it_value.tv_nsec = nanoseconds(left - whole).count();
    ::timerfd_settime(timer, 0, &value, nullptr);
}

/// Makes the timer unreadable until it is set again.
inline void clear_timer(int timer) {
    std::uint64_t expirations = 0;
    [[maybe_unused]] auto const got = ::read(timer, &expirations, sizeof(expirations));
}

} // namespace diomp::secure
