// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The library's clocks tell simulated time, and its waits give no real core away: these definitions
// come before those of the C library. So timeouts and reports of long waits depend on simulated
// time alone, and runs repeat exactly.
#include <cmath>
#include <ctime>
#include <sched.h>
#include <simgrid/s4u/Engine.hpp>
#include <sys/resource.h>

extern "C" {

int clock_gettime(clockid_t /*clock*/, timespec *now) noexcept {
    using simgrid::s4u::Engine;
    double const seconds = Engine::is_initialized() ? Engine::get_clock() : 0;
    double const whole = std::floor(seconds);
    now->tv_sec = static_cast<time_t>(whole);
    now->tv_nsec = static_cast<long>((seconds - whole) * 1e9);
    return 0;
}

int sched_yield() noexcept { return 0; }

int getrusage(__rusage_who_t /*who*/, rusage *used) noexcept {
    *used = {};
    return 0;
}

} // extern "C"
