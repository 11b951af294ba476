// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cores that this process may use, and the distance of two of them. The cores of a virtual
// machine migrate: at different times a pair may be two threads of one core, share a cache or share
// nothing, and operations of two ranks then take several times as long (docs/benchmarks.md).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sched.h>
#include <thread>
#include <vector>

namespace diomp::bench {

struct alignas(128) shared_word {
    std::atomic<long> value{0};
};

inline void bind_to_core(int core) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    sched_setaffinity(0, sizeof(only), &only);
}

inline std::vector<int> allowed_cores() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &allowed)) {
            cores.push_back(core);
        }
    }
    return cores;
}

/// Returns the nanoseconds of a round trip of a cache line between two cores, the median over 20
/// ms. Leaves the calling thread bound to the first core.
inline double core_distance(int one, int other) {
    using clock_type = std::chrono::steady_clock;
    constexpr long trips = 50; // per sample
    shared_word there;
    shared_word back;
    std::atomic<bool> is_over{false};
    std::thread echo([&] {
        bind_to_core(other);
        for (long number = 1; !is_over.load(std::memory_order_relaxed);) {
            if (there.value.load(std::memory_order_acquire) == number) {
                back.value.store(number++, std::memory_order_release);
            }
        }
    });
    bind_to_core(one);
    std::vector<double> samples;
    long number = 0;
    for (auto const end = clock_type::now() + std::chrono::milliseconds(20);
         clock_type::now() < end;) {
        auto const begin = clock_type::now();
        for (long trip = 0; trip < trips; ++trip) {
            there.value.store(++number, std::memory_order_release);
            while (back.value.load(std::memory_order_acquire) != number) {
            }
        }
        const std::chrono::duration<double, std::nano> elapsed = clock_type::now() - begin;
        samples.push_back(elapsed.count() / trips);
    }
    is_over = true;
    echo.join();
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
}

} // namespace diomp::bench
