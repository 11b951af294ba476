// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Limits of a launcher's fences: a rank that never starts, or stops while it starts, must not leave
// the others waiting without a word. diomp-run applies them for its ranks, since it knows which are
// missing (its fence_watch); under other launchers each rank does (fence_wait).
#pragma once

#include <functional>

namespace diomp::launch {

/// Seconds. Programs of many ranks may load slowly, however short DIOMP_TIMEOUT is.
inline constexpr double min_fence_timeout_s = 30;

struct fence_limits {
    double warn_after_s = 60; ///< DIOMP_WARN_AFTER; 0: never
    double timeout_s = 0;     ///< DIOMP_TIMEOUT, at least min_fence_timeout_s; 0: none

    /// Values that are not numbers count as unset: the settings report them.
    static fence_limits from(const std::function<const char *(const char *)> &lookup);
};

} // namespace diomp::launch
