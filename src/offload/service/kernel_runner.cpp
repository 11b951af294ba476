// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/kernel_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace diomp::offload::service {

status kernel_runner::launch(const remote::launch_arguments &launch, std::size_t thread,
                             longest_kernel &longest) {
    std::string const *const name = device_.kernel_name(launch.kernel);
    if (name == nullptr) {
        return error(OMPX_ERR_ARG, fmt::format("there is no kernel at {:#x}", launch.kernel));
    }
    activities_.begin(thread, *name);
    auto const begin = std::chrono::steady_clock::now();
    status const done = device_.launch(launch);
    if (min_time_.count() > 0) {
        std::this_thread::sleep_until(begin + min_time_);
    }
    activities_.end(thread);
    auto const elapsed = std::chrono::steady_clock::now() - begin;
    record(launch.kernel, *name, elapsed);
    auto const taken = std::chrono::duration_cast<std::chrono::microseconds>(elapsed);
    if (longest.kernel == 0 || taken > longest.time) {
        longest = {launch.kernel, taken};
    }
    if (!done) {
        return error(done.failure().code(),
                     fmt::format("kernel {}: {}", *name, done.failure().message()));
    }
    return {};
}

void kernel_runner::record(std::uint64_t kernel, const std::string &name,
                           std::chrono::nanoseconds taken) {
    auto const nanoseconds = static_cast<std::uint64_t>(taken.count());
    std::lock_guard const guard(mutex_);
    remote::kernel_time &sum = times_[kernel];
    if (sum.calls++ == 0) {
        sum.name = name;
    }
    sum.total_ns += nanoseconds;
    sum.longest_ns = std::max(sum.longest_ns, nanoseconds);
}

std::vector<remote::kernel_time> kernel_runner::times() const {
    std::lock_guard const guard(mutex_);
    std::vector<remote::kernel_time> times;
    times.reserve(times_.size());
    for (auto const &each : times_) {
        times.push_back(each.second);
    }
    return times;
}

} // namespace diomp::offload::service
