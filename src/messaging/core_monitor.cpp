// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "messaging/internal/core_monitor.h"

#include <algorithm>
#include <sched.h>
#include <sys/resource.h>

namespace diomp::messaging {
namespace {

using std::chrono::nanoseconds;

/// A yield that lasts longer has given the core to a CPU-bound thread.
constexpr nanoseconds lost_slice{1'000'000};
/// Threshold of the first yield after a period of sleeping: a part of a slice suffices.
constexpr nanoseconds lost_slice_again{300'000};
/// Cost of a sleep on both sides beyond that of a yield.
constexpr nanoseconds sleep_cost{20'000};
/// After a lost slice, waits sleep for a multiple of it before one tries a yield again. The
/// multiple is small at first, since many a slice is lost only once (to a rank that still starts,
/// or computes for a moment), and is doubled as long as the trials lose slices too. At most 16:
/// with 8, a tenth of the time beside a busy program is spent on trials; with 64, two ranks that
/// share a core without such a program take too long to notice. Barriers of eight ranks on two
/// cores: 8 to 15 us in ten jobs; with 16 from the beginning, 55 to 240 us in a third of them.
struct factor_range {
    int min, max;
};
constexpr factor_range lost_time_factors{1, 16};
/// Where each rank has a core, a wait that sleeps costs little, and a trial costs two ranks a
/// slice.
constexpr factor_range lost_time_factors_of_own_core{16, 256};
/// After so many yields without a lost slice, the next lost one counts as the first.
constexpr std::int64_t enough_yields = 16;
constexpr nanoseconds max_sleep_period{1'000'000'000};
/// If a yield lasts longer, another thread has run; the number of switches need not be read.
constexpr nanoseconds other_thread_ran{10'000};
/// While waits give the core away at once, one of so many reads the number of switches.
constexpr unsigned sample_interval = 16;
constexpr int num_trial_polls = 128; // a rank on another core replies within 2 us

} // namespace

core_access core_access::of_system() {
    core_access made;
    made.yield = [] { ::sched_yield(); };
    made.count_switches = [] {
        rusage used{};
        ::getrusage(RUSAGE_THREAD, &used);
        return used.ru_nivcsw; // a yield counts if another thread then runs
    };
    return made;
}

// Reading the number of switches costs as much as a yield. A wait that has polled in vain can
// afford it; of waits that yield at once, as ranks that share a core do, only a sample reads it.
bool core_monitor::samples_switches() { return polls() > 0 || is_sample(); }

bool core_monitor::is_sample() {
    return num_waits_.fetch_add(1, std::memory_order_relaxed) % sample_interval == 0;
}

int core_monitor::trial_polls() {
    return max_polls_ > 0 && polls() == 0 && is_sample() ? num_trial_polls : 0;
}

bool core_monitor::note_duration(nanoseconds lasted, clock::time_point now) {
    bool const was_sleeping = sleeps_until_.load(std::memory_order_relaxed) != clock::rep{0};
    auto const num_yields = num_yields_.load(std::memory_order_relaxed) + 1;
    bool const is_lost = lasted > (was_sleeping ? lost_slice_again : lost_slice);
    num_yields_.store(is_lost ? 0 : num_yields, std::memory_order_relaxed);
    bool const sleeps = is_lost && lasted > num_yields * sleep_cost;
    if (sleeps) {
        bool const is_again = num_yields < enough_yields;
        int const doubled = lost_time_factor_.load(std::memory_order_relaxed) * 2;
        auto const factors = have_own_cores() ? lost_time_factors_of_own_core : lost_time_factors;
        int const factor = std::clamp(is_again ? doubled : 0, factors.min, factors.max);
        lost_time_factor_.store(factor, std::memory_order_relaxed);
        num_polls_.store(std::max(polls(), min_polls_before_sleep()), std::memory_order_relaxed);
        auto const sleeping = std::min(lasted * factor, max_sleep_period);
        sleeps_until_.store((now + sleeping).time_since_epoch().count(), std::memory_order_relaxed);
    } else if (was_sleeping) {
        sleeps_until_.store(clock::rep{0}, std::memory_order_relaxed);
    }
    return sleeps;
}

bool core_monitor::yield(bool is_first) {
    bool const samples = is_first && max_polls_ > 0 && samples_switches();
    long const before = samples ? core_.count_switches() : 0;
    auto const begin = core_.now();
    core_.yield();
    auto const end = core_.now();
    nanoseconds const lasted = end - begin;
    if (samples) {
        if (lasted > other_thread_ran || core_.count_switches() != before) {
            lower(0);
        } else {
            raise();
        }
    }
    return note_duration(lasted, end);
}

} // namespace diomp::messaging
