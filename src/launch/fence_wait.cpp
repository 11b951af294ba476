// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/fence_wait.h"

#include "base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace diomp::launch {

status fence_wait::check() {
    double const waited = waited_s();
    if (limits_.timeout_s > 0 && waited >= limits_.timeout_s) {
        return error(OMPX_ERR_TIMEOUT,
                     fmt::format("timed out after {:g} s waiting for {} to join the job or to "
                                 "reach a fence at its start or end",
                                 limits_.timeout_s, whom_),
                     "raise DIOMP_TIMEOUT if ranks only start slowly");
    }
    if (limits_.warn_after_s > 0 && waited >= limits_.warn_after_s &&
        !std::exchange(has_warned_, true)) {
        log(log_level::warn,
            "has been waiting for {} to join the job, or to reach a fence at its start or end, for "
            "{:.0f} s",
            whom_, waited);
    }
    return {};
}

int fence_wait::due_ms() const {
    double at_s = std::numeric_limits<double>::infinity();
    if (limits_.warn_after_s > 0 && !has_warned_) {
        at_s = limits_.warn_after_s;
    }
    if (limits_.timeout_s > 0) {
        at_s = std::min(at_s, limits_.timeout_s);
    }
    if (std::isinf(at_s)) {
        return -1;
    }
    constexpr double max_ms = 60000; // poll() takes an int
    return static_cast<int>(std::clamp(std::ceil((at_s - waited_s()) * 1e3), 1.0, max_ms));
}

} // namespace diomp::launch
