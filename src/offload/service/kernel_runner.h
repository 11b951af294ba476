// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches kernels of a session's device.
#pragma once

#include "offload/service/activity_table.h"
#include "offload/service/target.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace diomp::offload::service {

/// The kernel that took longest since a queue's last reply.
struct longest_kernel {
    std::uint64_t kernel = 0; ///< 0: none has run
    std::chrono::microseconds time{0};
};

/// Launches kernels and measures them. Any thread.
class kernel_runner {
public:
    /// Kernels take at least `min_time_s`.
    kernel_runner(target &device, activity_table &activities, double min_time_s)
        : device_(device), activities_(activities), min_time_(min_time_s) {}

    /// Blocks until the kernel has run. `thread`: number of the calling thread in the activity
    /// table.
    status launch(const remote::launch_arguments &launch, std::size_t thread,
                  longest_kernel &longest);
    /// Times of all kernels that have run.
    [[nodiscard]] std::vector<remote::kernel_time> times() const;

private:
    void record(std::uint64_t kernel, const std::string &name, std::chrono::nanoseconds taken);

    target &device_;
    activity_table &activities_;
    std::chrono::duration<double> const min_time_;
    mutable std::mutex mutex_;                                     ///< leaf lock; protects times_
    std::unordered_map<std::uint64_t, remote::kernel_time> times_; ///< [address]
};

} // namespace diomp::offload::service
