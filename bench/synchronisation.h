// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// barrier, lock, atomic. Each is first checked, then timed.
#pragma once

#include "session.h"

namespace diomp::bench {

/// Checks that after a barrier every rank sees the value that its left neighbour put before the
/// barrier, then times barriers.
template <typename Library>
void bench_barrier(session<Library> &with) {
    Library &library = with.library;
    const int right = (library.rank() + 1) % library.size();
    auto *const word = reinterpret_cast<volatile std::uint64_t *>(with.put_target);
    for (std::uint64_t round = 1; round <= 50; ++round) {
        library.put(right, with.put_target, &round, sizeof(round));
        library.fence(right);
        library.barrier();
        if (*word != round) {
            library.fail("barrier let a rank through: round " + std::to_string(round) +
                         ", neighbour at " + std::to_string(*word));
        }
        library.barrier();
    }
    const body run = all_ranks_body(library, [&library] { library.barrier(); });
    with.results.add({"barrier", "barrier", "-", 1, 0, with.measure_on_all(run)});
}

/// Checks the lock: all ranks increment a word at the target under the lock, without atomics.
template <typename Library>
void check_lock(session<Library> &with) {
    constexpr std::uint64_t rounds = 100;
    Library &library = with.library;
    const int target = with.target();
    if (with.is_target()) {
        std::memset(with.put_target, 0, sizeof(std::uint64_t));
    }
    library.barrier();
    for (std::uint64_t round = 0; round < rounds; ++round) {
        std::uint64_t count = 0;
        library.lock(target);
        library.get(&count, target, with.put_target, sizeof(count));
        ++count;
        library.put(target, with.put_target, &count, sizeof(count));
        library.fence(target);
        library.unlock(target);
    }
    library.barrier();
    std::uint64_t count = 0;
    std::memcpy(&count, with.put_target, sizeof(count));
    if (with.is_target() && count != rounds * static_cast<std::uint64_t>(library.size())) {
        library.fail("lock lost updates: counted " + std::to_string(count));
    }
    library.barrier();
}

template <typename Library>
void bench_lock(session<Library> &with) {
    Library &library = with.library;
    if constexpr (requires { library.lock(0); }) {
        check_lock(with);
        const auto operation = [&library, target = with.target()] {
            library.lock(target);
            library.unlock(target);
        };
        const std::vector<timing> times = with.measure_on_root({single_rank_body(operation)});
        with.results.add({"lock", "lock", "-", 1, 0, times.front()});
        with.results.add({"lock", "lock_contended", "-", 1, 0,
                          with.measure_on_all(all_ranks_body(library, operation))});
    }
}

template <typename Library>
void bench_atomic(session<Library> &with) {
    Library &library = with.library;
    auto *const word = reinterpret_cast<std::int64_t *>(with.put_target);
    if constexpr (requires { library.fetch_add(0, word, std::int64_t{1}); }) {
        const int target = with.target();
        if (with.is_target()) {
            *word = 0;
        }
        library.barrier();
        constexpr std::int64_t rounds = 1000;
        for (std::int64_t round = 0; round < rounds; ++round) {
            library.fetch_add(target, word, 1);
        }
        library.barrier();
        std::int64_t sum = 0;
        library.get(&sum, target, word, sizeof(sum));
        if (sum != rounds * library.size()) {
            library.fail("fetch_add lost updates: counted " + std::to_string(sum));
        }
        library.barrier();
        const auto operation = [&library, target, word] { library.fetch_add(target, word, 1); };
        const std::vector<timing> times = with.measure_on_root({single_rank_body(operation)});
        with.results.add({"atomic", "fetch_add", "-", 1, 8, times.front()});
        with.results.add({"atomic", "fetch_add_contended", "-", 1, 8,
                          with.measure_on_all(all_ranks_body(library, operation))});
    }
}

} // namespace diomp::bench
