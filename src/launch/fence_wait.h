// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The wait of a rank in a fence of its launcher.
#pragma once

#include "base/result.h"
#include "launch/fence_limits.h"

#include <chrono>
#include <string>
#include <utility>

namespace diomp::launch {

/// One wait for other ranks. For one thread.
class fence_wait {
public:
    /// `whom`: "other ranks", "rank 3".
    explicit fence_wait(const fence_limits &limits, std::string whom = "other ranks")
        : limits_(limits), whom_(std::move(whom)) {}

    /// Call from time to time. Writes a warning to the log when it is due; OMPX_ERR_TIMEOUT when
    /// the time is over.
    status check();
    /// Returns after how many milliseconds the next check() is due, at least 1; -1: never.
    [[nodiscard]] int due_ms() const;

private:
    using clock = std::chrono::steady_clock;
    [[nodiscard]] double waited_s() const {
        return std::chrono::duration<double>(clock::now() - begin_).count();
    }

    fence_limits limits_;
    std::string whom_;
    clock::time_point begin_ = clock::now();
    bool has_warned_ = false;
};

} // namespace diomp::launch
