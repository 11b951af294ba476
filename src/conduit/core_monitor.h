// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Learns from what happens to a rank's waiting threads whether other threads want their core, and
// decides from that how a wait goes on: poll, yield or sleep.
//
// Polling is the quickest way to see a store of a rank that runs on another core, and keeps a rank
// on the same core from storing at all. Yielding lets a rank on the same core go on, but beside a
// thread that never sleeps each yield costs a time slice (4 ms and more under EEVDF), or does
// nothing. A sleep that the awaited rank ends costs some microseconds at both ends, and a thread
// that has slept gets its core back at once even beside a thread that never sleeps.
//
// So: (1) A wait polls at most max_polls times. A quarter of that after each wait in whose first
// yield another thread ran; an eighth more after each wait where none did. (2) Where yields take
// time slices and, by and large, cost more than sleeps would, waits sleep instead for a multiple of
// the slice; then one of them tries a yield again. That a slice is over just when a thread yields
// happens as well, but rarely: then the yields in between have been worth it. (3) Waits that sleep
// learn as well how long to poll before: a quarter after each that polled in vain, more after each
// that did not. When it has come to nothing, some poll a little all the same, in case the awaited
// rank now runs beside this one.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace diomp::conduit {

/// How a core_monitor gives the core away and looks at what came of it. Replaced by tests.
struct core_access {
    using clock = std::chrono::steady_clock;
    clock::time_point (*now)() = &clock::now;
    void (*yield)();
    /// Times that another thread got this thread's core while it could have run on.
    long (*count_switches)();

    /// Those of the system.
    static core_access of_system();
};

/// Any thread. What threads learn at the same time may get lost.
class core_monitor {
public:
    using clock = core_access::clock;
    using nanoseconds = std::chrono::nanoseconds;

    /// `is_crowded`: more ranks than cores; then the first waits yield at once.
    core_monitor(int max_polls, bool is_crowded, const core_access &core = core_access::of_system())
        : core_(core), max_polls_(max_polls), num_polls_(is_crowded ? 0 : max_polls) {}

    /// Polls of a wait before it gives the core away.
    [[nodiscard]] int polls() const { return num_polls_.load(std::memory_order_relaxed); }
    /// Whether another thread has wanted the core lately.
    [[nodiscard]] bool is_wanted() const { return polls() * 2 <= max_polls_; }
    /// A wait has ended while it polled.
    void note_success() {
        if (polls() < max_polls_) [[unlikely]] {
            raise();
        }
    }
    /// Whether a wait that would yield now is to sleep instead.
    [[nodiscard]] bool is_to_sleep() const {
        return sleeps_until_.load(std::memory_order_relaxed) != clock::rep{0} && sleeps_still();
    }
    /// Polls that a wait which is to sleep makes beyond polls().
    [[nodiscard]] int trial_polls();
    /// A wait sleeps for the first time, after it has polled in vain.
    void note_sleep() {
        if (polls() > 0) {
            lower();
        }
    }
    /// Yields, and learns from it. `is_first` of its wait. True: the wait is to sleep from now on.
    bool yield(bool is_first);

private:
    static constexpr int least_raise = 32;

    [[nodiscard]] bool sleeps_still() const {
        return core_.now().time_since_epoch().count() <
               sleeps_until_.load(std::memory_order_relaxed);
    }
    void raise() {
        int const now = polls();
        num_polls_.store(std::min(max_polls_, now + now / 8 + least_raise),
                         std::memory_order_relaxed);
    }
    void lower() { num_polls_.store(polls() / 4, std::memory_order_relaxed); }
    bool note_length(nanoseconds lasted, clock::time_point now);
    [[nodiscard]] bool looks_for_switches();
    [[nodiscard]] bool is_turn();

    core_access core_;
    int const max_polls_;
    std::atomic<int> num_polls_;
    std::atomic<unsigned> num_waits_{0};      ///< that gave the core away at once
    std::atomic<std::int64_t> num_yields_{0}; ///< since the last one that took a slice
    /// Of the clock; 0: waits do not sleep.
    std::atomic<clock::rep> sleeps_until_{0};
};

} // namespace diomp::conduit
