// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Backoff of polling loops that have no descriptor to sleep on.
#pragma once

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <thread>

namespace diomp::transport {

/// Yields the core at first, then sleeps. A yield reaches only threads of the same session
/// (autogroup) or control group, so a thread that keeps yielding starves processes of other
/// sessions: Linux 6.18 was seen to run a yielding rank for seconds while the rank of another
/// session that it waited for, bound to the same core, got no time. One thread.
class backoff {
public:
    /// Call after a poll without progress.
    void pause() {
        auto const now = clock::now();
        if (!is_idle_) {
            is_idle_ = true;
            idle_since_ = now;
            next_sleep_ = min_sleep;
        }
        if (now - idle_since_ < max_yield_time) {
            ::sched_yield();
            return;
        }
        std::this_thread::sleep_for(next_sleep_);
        next_sleep_ = std::min(next_sleep_ * 2, max_sleep);
    }
    /// Call after a poll with progress.
    void reset() { is_idle_ = false; }

private:
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds max_yield_time{5};
    static constexpr std::chrono::microseconds min_sleep{50};
    static constexpr std::chrono::microseconds max_sleep{1000};

    bool is_idle_ = false;
    clock::time_point idle_since_;
    std::chrono::microseconds next_sleep_{min_sleep};
};

/// Calls advance() until is_over(), with backoff. Hold no locks.
template <typename IsOver, typename Advance>
void advance_until(IsOver &&is_over, Advance &&advance) {
    backoff idle;
    while (!is_over()) {
        if (advance()) {
            idle.reset();
        } else {
            idle.pause();
        }
    }
}

} // namespace diomp::transport
