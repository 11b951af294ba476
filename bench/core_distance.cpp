// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How far apart are the first two cores that this process may use? Prints the nanoseconds of a
// round trip of a cache line between them, the median over 20 ms. A virtual machine's cores move:
// the same pair may be one core's two threads, neighbours on one cache, or strangers, and whatever
// two ranks do together then takes several times as long (docs/benchmarks.md).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <sched.h>
#include <thread>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

struct alignas(128) word {
    std::atomic<long> value{0};
};

void stay_on(int core) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    sched_setaffinity(0, sizeof(only), &only);
}

std::vector<int> own_cores() {
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

} // namespace

int main() {
    const std::vector<int> cores = own_cores();
    if (cores.size() < 2) {
        std::puts("0");
        return 0;
    }
    constexpr long trips = 50; // a sample
    word there;
    word back;
    std::atomic<bool> is_over{false};
    std::thread other([&] {
        stay_on(cores[1]);
        for (long number = 1; !is_over.load(std::memory_order_relaxed);) {
            if (there.value.load(std::memory_order_acquire) == number) {
                back.value.store(number++, std::memory_order_release);
            }
        }
    });
    stay_on(cores[0]);
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
        const std::chrono::duration<double, std::nano> taken = clock_type::now() - begin;
        samples.push_back(taken.count() / trips);
    }
    is_over = true;
    other.join();
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    std::printf("%.0f\n", *middle);
    return 0;
}
