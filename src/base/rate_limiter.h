// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Limits the rate of reports.
#pragma once

#include <chrono>

namespace diomp {

/// Permits a number of reports per interval and counts the others. Not thread-safe.
class rate_limiter {
public:
    using clock = std::chrono::steady_clock;

    rate_limiter(int max_reports, clock::duration interval)
        : max_reports_(max_reports), interval_(interval) {}

    /// Whether one more report may be made.
    [[nodiscard]] bool permits(clock::time_point now = clock::now()) {
        if (now - begin_ >= interval_ || num_permitted_ == 0) {
            begin_ = now;
            num_permitted_ = 0;
        }
        if (num_permitted_ >= max_reports_) {
            ++num_suppressed_;
            return false;
        }
        ++num_permitted_;
        return true;
    }
    /// Number of suppressed reports since the last call.
    [[nodiscard]] long take_suppressed() {
        long const count = num_suppressed_;
        num_suppressed_ = 0;
        return count;
    }

private:
    int max_reports_;
    clock::duration interval_;
    clock::time_point begin_{};
    int num_permitted_ = 0;
    long num_suppressed_ = 0;
};

} // namespace diomp
