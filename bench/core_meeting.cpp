// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What does it take two cores to meet? Each writes the next line of its own ring and polls the
// same line of the other's: a barrier without anything around it. By what a core does with its own
// lines meanwhile. The limit of the runtime's meeting, and why that does what it does
// (docs/collectives.md).
//
// bench_core_meeting
#include "two_cores.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>

namespace diomp::bench {
namespace {

using clock_type = std::chrono::steady_clock;

constexpr std::uint64_t num_lines = 128;

struct alignas(64) line {
    std::atomic<std::uint64_t> epoch{0};
    std::atomic<std::uint64_t> payload{0};
};

struct ring {
    line lines[num_lines];

    line &at(std::uint64_t epoch) { return lines[epoch % num_lines]; }
};

enum class next_line { left_alone, prefetched, touched };

struct manner {
    const char *name;
    next_line next;
    bool reads_own = false; ///< after the meeting
    bool locks = false;     ///< a mutex of its own around it
};

constexpr manner manners[] = {
    {"next line left alone", next_line::left_alone},
    {"next line prefetched for writing", next_line::prefetched},
    {"next line touched by a store", next_line::touched},
    {"prefetched; own line read", next_line::prefetched, true},
    {"touched; own line read", next_line::touched, true},
    {"prefetched; a mutex around it", next_line::prefetched, false, true},
    {"touched; a mutex around it", next_line::touched, false, true},
    {"prefetched; own line read; a mutex around it", next_line::prefetched, true, true},
    {"touched; own line read; a mutex around it", next_line::touched, true, true},
};

/// The compiler's builtin fetches for reading only, unless it may use the newer instruction.
void prefetch_for_write(line &target) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(target));
#else
    __builtin_prefetch(&target, 1);
#endif
}

void meet(ring &own, ring &other, std::uint64_t epoch, const manner &how) {
    own.at(epoch).payload.store(epoch, std::memory_order_relaxed);
    own.at(epoch).epoch.store(epoch, std::memory_order_release);
    if (how.next == next_line::prefetched) {
        prefetch_for_write(own.at(epoch + 1));
    } else if (how.next == next_line::touched) {
        own.at(epoch + 1).payload.store(0, std::memory_order_relaxed);
    }
    while (other.at(epoch).epoch.load(std::memory_order_acquire) < epoch) {
    }
    if (how.reads_own && own.at(epoch).payload.load(std::memory_order_relaxed) != epoch) {
        std::abort();
    }
}

/// Nanoseconds per meeting.
double run(const manner &how, int one, int other) {
    constexpr std::uint64_t num_meetings = 20000;
    auto const rings = std::make_unique<ring[]>(2);
    auto const body = [&](int core, ring &own, ring &others) {
        stay_on(core);
        std::mutex unshared;
        std::unique_lock turn(unshared, std::defer_lock);
        auto begin = clock_type::now();
        for (std::uint64_t epoch = 1; epoch <= num_meetings; ++epoch) {
            if (epoch == num_meetings / 10) {
                begin = clock_type::now();
            }
            if (how.locks) {
                turn.lock();
            }
            meet(own, others, epoch, how);
            if (how.locks) {
                turn.unlock();
            }
        }
        const std::chrono::duration<double, std::nano> lasted = clock_type::now() - begin;
        return lasted.count() / (0.9 * num_meetings);
    };
    std::thread second([&] { body(other, rings[1], rings[0]); });
    double const taken = body(one, rings[0], rings[1]);
    second.join();
    return taken;
}

int measure_all() {
    std::vector<int> const cores = own_cores();
    if (cores.size() < 2) {
        std::fprintf(stderr, "bench_core_meeting needs two cores\n");
        return 77;
    }
    std::printf("# core distance %.0f ns\n", core_distance(cores[0], cores[1]));
    for (const manner &how : manners) {
        std::vector<double> samples(15);
        for (double &each : samples) {
            each = run(how, cores[0], cores[1]);
        }
        std::nth_element(samples.begin(), samples.begin() + 7, samples.end());
        std::printf("%-44s %6.0f ns\n", how.name, samples[7]);
    }
    return 0;
}

} // namespace
} // namespace diomp::bench

int main() { return diomp::bench::measure_all(); }
