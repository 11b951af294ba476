// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "messaging/wait_limits.h"

#include <algorithm>

namespace diomp::messaging {
namespace {

struct thread_limits {
    inherited_limit::time_point last_timeout; ///< the epoch: none
    inherited_limit::time_point since;        ///< of the inherited_limit; the epoch: none
};
thread_local thread_limits limits;

} // namespace

inherited_limit::inherited_limit(time_point since) { limits.since = since; }

inherited_limit::~inherited_limit() { limits.since = {}; }

inherited_limit::time_point inherited_limit::begin_of_wait(time_point now, double limit_s) {
    time_point const since = limits.since;
    if (since == time_point() || limits.last_timeout <= since) {
        return now;
    }
    constexpr double max_part = 0.98;
    auto const longest = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(max_part * limit_s));
    return std::max(since, now - longest);
}

void inherited_limit::note_timeout(time_point now) { limits.last_timeout = now; }

} // namespace diomp::messaging
