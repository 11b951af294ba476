// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From when the waits of a thread count towards DIOMP_TIMEOUT. Operations that are queued behind
// one that has timed out have waited for the same ranks all the time.
#pragma once

#include <chrono>

namespace diomp::messaging {

/// While it exists, the waits of this thread count from `since`, if one of them has timed out after
/// that; otherwise each counts from its own beginning. One per thread at a time.
class inherited_limit {
public:
    using time_point = std::chrono::steady_clock::time_point;

    explicit inherited_limit(time_point since);
    ~inherited_limit();
    inherited_limit(const inherited_limit &) = delete;
    inherited_limit &operator=(const inherited_limit &) = delete;

    /// For the engine: when a wait of this thread that begins `now` counts from. At least a
    /// fiftieth of the limit is left.
    static time_point begin_of_wait(time_point now, double limit_s);
    /// For the engine: a wait of this thread has timed out.
    static void note_timeout(time_point now);
};

} // namespace diomp::messaging
