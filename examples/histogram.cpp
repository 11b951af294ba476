// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A histogram that is distributed over the ranks: bin b is on rank b % ranks, and all threads of
// all ranks count with remote atomics.
#include <cstdint>
#include <cstdio>
#include <diomp.h>
#include <span>

namespace {
constexpr int bins = 64;
constexpr int samples = 10000;
} // namespace

int main() {
    const int ranks = ompx_num_ranks();
    const auto me = static_cast<std::uint32_t>(ompx_rank_num());
    auto *memory = static_cast<std::uint64_t *>(
        omp_alloc(bins * sizeof(std::uint64_t), ompx_symmetric_mem_alloc));
    const std::span<std::uint64_t> counts(memory, bins);
    for (std::uint64_t &count : counts) {
        count = 0;
    }
    ompx_barrier();

#pragma omp parallel for
    for (int i = 0; i < samples; ++i) {
        const auto sample = (me * samples + static_cast<std::uint32_t>(i)) * 2654435761u;
        const int bin = static_cast<int>(sample >> 26);
        const std::uint64_t one = 1;
        ompx_atomic_add(bin % ranks, &counts[static_cast<std::size_t>(bin)], &one, OMPX_UINT64);
    }
    ompx_barrier();

    std::uint64_t total = 0;
    for (const std::uint64_t count : counts) {
        total += count;
    }
    ompx_allreduce(&total, &total, 1, OMPX_UINT64, OMPX_SUM, ompx_group_world);
    if (me == 0) {
        std::printf("counted %llu samples\n", static_cast<unsigned long long>(total));
    }
    return total == static_cast<std::uint64_t>(samples) * static_cast<std::uint64_t>(ranks) ? 0 : 1;
}
