// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/fence_limits.h"

#include <algorithm>
#include <cstdlib>

namespace diomp::launch {
namespace {

/// Seconds; `missing` if the variable is unset or not a number in the range of the setting.
double seconds_from(const char *text, double missing) {
    constexpr double max_s = 1e9;
    if (text == nullptr) {
        return missing;
    }
    char *end = nullptr;
    double const value = std::strtod(text, &end);
    return end != text && *end == '\0' && value >= 0 && value <= max_s ? value : missing;
}

} // namespace

fence_limits fence_limits::from(const std::function<const char *(const char *)> &lookup) {
    fence_limits limits;
    limits.warn_after_s = seconds_from(lookup("DIOMP_WARN_AFTER"), limits.warn_after_s);
    limits.timeout_s = seconds_from(lookup("DIOMP_TIMEOUT"), limits.timeout_s);
    if (limits.timeout_s > 0) {
        limits.timeout_s = std::max(limits.timeout_s, min_fence_timeout_s);
    }
    return limits;
}

} // namespace diomp::launch
