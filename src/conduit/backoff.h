// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a loop does between looks that find nothing, if there is no descriptor to sleep on.
#pragma once

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <thread>

namespace diomp::conduit {

/// Yields the core at first, then sleeps. A thread that yields for long keeps the core from
/// processes of other sessions and control groups, which a yield does not reach: Linux 6.18 was
/// seen to run a yielding rank for seconds while the rank of another session that it waited for,
/// bound to the same core, got nothing. One thread.
class backoff {
public:
    /// A look has found nothing.
    void pause() {
        auto const now = clock::now();
        if (!is_idle_) {
            is_idle_ = true;
            idle_since_ = now;
            next_sleep_ = shortest_sleep;
        }
        if (now - idle_since_ < yields_last) {
            ::sched_yield();
            return;
        }
        std::this_thread::sleep_for(next_sleep_);
        next_sleep_ = std::min(next_sleep_ * 2, longest_sleep);
    }
    /// A look has found something.
    void reset() { is_idle_ = false; }

private:
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds yields_last{5};
    static constexpr std::chrono::microseconds shortest_sleep{50};
    static constexpr std::chrono::microseconds longest_sleep{1000};

    bool is_idle_ = false;
    clock::time_point idle_since_;
    std::chrono::microseconds next_sleep_{shortest_sleep};
};

/// Makes progress by advance(), without locks, until is_over().
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

} // namespace diomp::conduit
