// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/core_monitor.h"

#include <sched.h>
#include <sys/resource.h>

namespace diomp::conduit {
namespace {

using std::chrono::nanoseconds;

/// A yield that lasts longer has given the core to a thread that does not wait.
constexpr nanoseconds slice_was_lost{1'000'000};
/// The first yield after waits that slept: a part of a slice is enough.
constexpr nanoseconds slice_is_lost_again{300'000};
/// What a sleep costs both sides beyond what a yield does.
constexpr nanoseconds cost_of_sleep{20'000};
/// After a lost slice, waits sleep so many times as long before one tries a yield again. With 8 a
/// tenth of the time beside a busy program goes to trials, with 64 two ranks that have met on one
/// core without such a program take too long to notice (barriers of two ranks beside two busy
/// programs: 1 to 23 us with 8, 2 to 11 with 16, 2 to 19 with 64).
constexpr int lost_time_factor = 16;
constexpr nanoseconds longest_sleeping{1'000'000'000};
/// Beyond this, the number of switches is not needed in order to know that others ran.
constexpr nanoseconds others_ran{10'000};
/// Waits between two looks at how things are, while waits give the core away at once.
constexpr unsigned look_interval = 16;
constexpr int polls_of_trial = 128; // a rank on another core answers within 2 us

} // namespace

core_access core_access::of_system() {
    core_access made;
    made.yield = [] { ::sched_yield(); };
    made.count_switches = [] {
        rusage used{};
        ::getrusage(RUSAGE_THREAD, &used);
        return used.ru_nivcsw; // a yield is one if another thread then runs
    };
    return made;
}

// Asking costs as much as a yield. A wait that has polled in vain can afford it; of those that
// yield at once, as ranks that share a core do, some do it for all.
bool core_monitor::looks_for_switches() { return polls() > 0 || is_turn(); }

bool core_monitor::is_turn() {
    return num_waits_.fetch_add(1, std::memory_order_relaxed) % look_interval == 0;
}

int core_monitor::trial_polls() {
    return max_polls_ > 0 && polls() == 0 && is_turn() ? polls_of_trial : 0;
}

bool core_monitor::note_length(nanoseconds lasted, clock::time_point now) {
    bool const has_slept = sleeps_until_.load(std::memory_order_relaxed) != clock::rep{0};
    auto const num_yields = num_yields_.load(std::memory_order_relaxed) + 1;
    bool const is_lost = lasted > (has_slept ? slice_is_lost_again : slice_was_lost);
    num_yields_.store(is_lost ? 0 : num_yields, std::memory_order_relaxed);
    bool const sleeps = is_lost && lasted > num_yields * cost_of_sleep;
    if (sleeps) {
        auto const sleeping = std::min(lasted * lost_time_factor, longest_sleeping);
        sleeps_until_.store((now + sleeping).time_since_epoch().count(), std::memory_order_relaxed);
    } else if (has_slept) {
        sleeps_until_.store(clock::rep{0}, std::memory_order_relaxed);
    }
    return sleeps;
}

bool core_monitor::yield(bool is_first) {
    bool const looks = is_first && max_polls_ > 0 && looks_for_switches();
    long const before = looks ? core_.count_switches() : 0;
    auto const begin = core_.now();
    core_.yield();
    auto const end = core_.now();
    nanoseconds const lasted = end - begin;
    if (looks) {
        if (lasted > others_ran || core_.count_switches() != before) {
            lower();
        } else {
            raise();
        }
    }
    return note_length(lasted, end);
}

} // namespace diomp::conduit
