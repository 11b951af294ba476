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

namespace diomp::conduit::shm {

/// Returns when the word differs from `seen`, on a wake, a signal or when the time is over.
inline void futex_wait(const std::atomic<std::uint32_t> &word, std::uint32_t seen,
                       std::chrono::microseconds limit) {
    timespec const timeout{limit.count() / 1000000, (limit.count() % 1000000) * 1000};
    ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

inline void futex_wake_all(const std::atomic<std::uint32_t> &word) {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace diomp::conduit::shm
