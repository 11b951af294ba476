// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Detects from a rank's waiting threads whether other threads use their core, and decides from that
// whether a wait polls, yields or sleeps.
//
// Polling is the fastest way to see a store of a rank that runs on another core, but it keeps a
// rank on the same core from storing at all. Yielding lets a rank on the same core run, but beside
// a CPU-bound thread each yield costs a time slice (4 ms and more under EEVDF), or has no effect. A
// sleep that the awaited rank ends costs some microseconds on both sides, and a thread that has
// slept gets its core back at once even beside a CPU-bound thread.
//
// Rules: (1) A wait polls at most max_polls times. The number is divided by four after each wait
// whose first yield ran another thread, and grows by an eighth after each wait whose first yield
// did not. (2) If yields take time slices and cost more on average than sleeps would, waits sleep
// for a multiple of the slice instead; then one of them tries a yield again, and doubles the
// multiple if that yield takes a slice too. A time slice that ends just when a thread yields looks
// the same but is rare: the cheap yields in between outweigh it.
// (3) Waits that sleep also adapt the number of polls before the sleep: divided by four after each
// wait that polled in vain, increased after each that did not. When the number has reached 0, some
// waits still poll a little, in case the awaited rank now runs on another core.
// (4) If there is a core for each rank, the other threads are of other programs, and the awaited
// rank most likely runs on another core: waits poll for about the cost of a sleep before they sleep
// (the number of polls does not fall below half), and yields are tried less often. That ends when
// most waits poll in vain: then more of the program's threads share the cores than it has ranks.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace diomp::messaging {

/// System calls of a core_monitor. Tests replace them.
struct core_access {
    using clock = std::chrono::steady_clock;
    clock::time_point (*now)() = &clock::now;
    void (*yield)();
    /// Involuntary context switches of this thread so far.
    long (*count_switches)();

    /// The real system calls.
    static core_access of_system();
};

/// Thread-safe. Concurrent updates may get lost.
class core_monitor {
public:
    using clock = core_access::clock;
    using nanoseconds = std::chrono::nanoseconds;

    /// `is_oversubscribed`: more ranks than cores; then the first waits yield at once.
    core_monitor(int max_polls, bool is_oversubscribed,
                 const core_access &core = core_access::of_system())
        : core_(core), max_polls_(max_polls), is_oversubscribed_(is_oversubscribed),
          num_polls_(is_oversubscribed ? 0 : max_polls) {}

    /// Polls of a wait before it gives the core away.
    [[nodiscard]] int polls() const { return num_polls_.load(std::memory_order_relaxed); }
    /// Whether another thread has used the core lately.
    [[nodiscard]] bool is_contended() const { return polls() * 2 <= max_polls_; }
    /// Call after a wait that ended while polling.
    void note_success() {
        if (polls() < max_polls_) [[unlikely]] {
            raise();
        }
    }
    /// Whether a wait that would yield now must sleep instead.
    [[nodiscard]] bool should_sleep() const {
        return sleeps_until_.load(std::memory_order_relaxed) != clock::rep{0} && is_sleep_period();
    }
    /// Polls that a sleeping wait makes in addition to polls().
    [[nodiscard]] int trial_polls();
    /// Call when a wait sleeps for the first time, after it has polled in vain.
    void note_sleep() {
        int const vain = num_in_vain_.load(std::memory_order_relaxed);
        num_in_vain_.store(std::min(vain + 1, max_in_vain), std::memory_order_relaxed);
        if (int const floor = min_polls_before_sleep(); polls() > floor) {
            lower(floor);
        }
    }
    /// Yields, and records the effect. `is_first`: the first yield of its wait. True: the wait must
    /// sleep from now on.
    bool yield(bool is_first);

private:
    static constexpr int min_raise = 32;
    static constexpr int max_in_vain = 32;

    [[nodiscard]] bool is_sleep_period() const {
        return core_.now().time_since_epoch().count() <
               sleeps_until_.load(std::memory_order_relaxed);
    }
    /// Whether awaited ranks seem to run on other cores than their waits.
    [[nodiscard]] bool have_own_cores() const {
        return !is_oversubscribed_ &&
               num_in_vain_.load(std::memory_order_relaxed) < max_in_vain / 2;
    }
    [[nodiscard]] int min_polls_before_sleep() const {
        return have_own_cores() ? max_polls_ / 2 : 0;
    }
    void raise() {
        int const vain = num_in_vain_.load(std::memory_order_relaxed);
        num_in_vain_.store(std::max(vain - 1, 0), std::memory_order_relaxed);
        int const now = polls();
        num_polls_.store(std::min(max_polls_, now + now / 8 + min_raise),
                         std::memory_order_relaxed);
    }
    void lower(int at_least) {
        num_polls_.store(std::max(polls() / 4, at_least), std::memory_order_relaxed);
    }
    bool note_duration(nanoseconds lasted, clock::time_point now);
    [[nodiscard]] bool samples_switches();
    [[nodiscard]] bool is_sample();

    core_access core_;
    int const max_polls_;
    bool const is_oversubscribed_;
    std::atomic<int> num_polls_;
    std::atomic<int> num_in_vain_{
        0}; ///< waits that polled and slept, less those that did not sleep
    std::atomic<unsigned> num_waits_{0};      ///< waits that gave the core away at once
    std::atomic<std::int64_t> num_yields_{0}; ///< since the last yield that took a time slice
    std::atomic<int> lost_time_factor_{0};    ///< of the last period of sleeping, to its slice
    /// In ticks of the clock; 0: waits do not sleep.
    std::atomic<clock::rep> sleeps_until_{0};
};

} // namespace diomp::messaging
