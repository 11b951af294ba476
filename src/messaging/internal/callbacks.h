// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions to be called once a condition holds.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

namespace diomp::messaging {

/// Thread-safe; uses a leaf lock of its own.
class callbacks {
public:
    void add(std::function<bool()> is_over, std::function<void()> then);
    /// Calls the functions whose conditions hold; true if there were any. A thread that checks the
    /// conditions takes all of them out meanwhile.
    bool run();
    [[nodiscard]] bool has_any() const { return num_waiting_.load(std::memory_order_acquire) > 0; }

private:
    struct pending_callback {
        std::function<bool()> is_over;
        std::function<void()> then;
    };

    std::mutex mutex_;
    std::vector<pending_callback> waiting_;
    std::atomic<int> num_waiting_{0};
};

} // namespace diomp::messaging
