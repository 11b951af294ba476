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

/// A descriptor that becomes readable at the earliest of several times.
class deadline_timer {
public:
    using clock = std::chrono::steady_clock;

    /// -1 if it could not be created; errno is the reason.
    [[nodiscard]] int fd() const { return fd_.get(); }
    void arm(clock::time_point when) {
        using namespace std::chrono;
        if (armed_for_ <= when) {
            return;
        }
        armed_for_ = when;
        auto const left = std::max<clock::duration>(when - clock::now(), milliseconds(1));
        auto const whole = duration_cast<seconds>(left);
        itimerspec value{};
        value.it_value.tv_sec = whole.count();
        value.it_value.tv_nsec = nanoseconds(left - whole).count();
        ::timerfd_settime(fd_.get(), 0, &value, nullptr);
    }
    /// Call once it is readable: forgets all times.
    void clear() {
        std::uint64_t expirations = 0;
        [[maybe_unused]] auto const got = ::read(fd_.get(), &expirations, sizeof(expirations));
        armed_for_ = clock::time_point::max();
    }

private:
    unique_fd fd_{::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
    clock::time_point armed_for_ = clock::time_point::max(); ///< max(): not armed
};

} // namespace diomp::secure
