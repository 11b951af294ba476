// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sleeping on a word of shared memory.
#pragma once

#include <climits>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace diomp::transport::shm {

/// Returns when the word differs from `seen`, on a wake for one of `reasons`, on a signal, or when
/// the time is over.
inline void futex_wait(const std::atomic<std::uint32_t> &word, std::uint32_t seen,
                       std::chrono::microseconds limit, std::uint32_t reasons) {
    timespec end{};
    ::clock_gettime(CLOCK_MONOTONIC, &end); // FUTEX_WAIT_BITSET takes an absolute time
    auto const nanoseconds = end.tv_nsec + (limit.count() % 1000000) * 1000;
    end.tv_sec += limit.count() / 1000000 + nanoseconds / 1'000'000'000;
    end.tv_nsec = nanoseconds % 1'000'000'000;
    ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, seen, &end, nullptr, reasons);
}

/// Wakes threads that wait for one of `reasons`.
inline void futex_wake_all(const std::atomic<std::uint32_t> &word, std::uint32_t reasons) {
    ::syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, reasons);
}

} // namespace diomp::transport::shm
