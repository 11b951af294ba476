// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Measures a barrier of two cores: each writes the next cache line of its own ring and polls the
// corresponding line of the other core's ring. The variants differ in how a core treats its own
// lines meanwhile. This is the lower limit of the runtime's barrier on a node, and the reason for
// its implementation (docs/collectives.md).
//
// bench_core_barrier
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

struct variant {
    const char *name;
    next_line next;
    bool reads_own = false; ///< reads its own line after the barrier
    bool locks = false;     ///< holds a mutex of its own during the barrier
};

constexpr variant variants[] = {
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

/// Prefetches a line for writing. The compiler's builtin only prefetches for reading, unless it may
/// use the newer instruction.
void prefetch_for_write(line &target) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(target));
#else
    __builtin_prefetch(&target, 1);
#endif
}

void arrive_and_wait(ring &own, ring &other, std::uint64_t epoch, const variant &how) {
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

/// Returns nanoseconds per barrier.
double run(const variant &how, int one, int other) {
    constexpr std::uint64_t num_rounds = 20000;
    auto const rings = std::make_unique<ring[]>(2);
    auto const body = [&](int core, ring &own, ring &others) {
        bind_to_core(core);
        std::mutex unshared;
        std::unique_lock call_lock(unshared, std::defer_lock);
        auto begin = clock_type::now();
        for (std::uint64_t epoch = 1; epoch <= num_rounds; ++epoch) {
            if (epoch == num_rounds / 10) {
                begin = clock_type::now();
            }
            if (how.locks) {
                call_lock.lock();
            }
            arrive_and_wait(own, others, epoch, how);
            if (how.locks) {
                call_lock.unlock();
            }
        }
        const std::chrono::duration<double, std::nano> lasted = clock_type::now() - begin;
        return lasted.count() / (0.9 * num_rounds);
    };
    std::thread second([&] { body(other, rings[1], rings[0]); });
    double const elapsed_ns = body(one, rings[0], rings[1]);
    second.join();
    return elapsed_ns;
}

int measure_all() {
    std::vector<int> const cores = allowed_cores();
    if (cores.size() < 2) {
        std::fprintf(stderr, "bench_core_barrier needs two cores\n");
        return 77;
    }
    std::printf("# core distance %.0f ns\n", core_distance(cores[0], cores[1]));
    for (const variant &how : variants) {
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
