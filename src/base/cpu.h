// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The few instructions and sizes that depend on the processor.
#pragma once

#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace diomp {

/// Distance that keeps two variables out of each other's cache line (adjacent-line prefetch not
/// counted).
inline constexpr std::size_t cache_line_bytes = 64;

/// Tells the core that this is a polling loop.
inline void cpu_relax() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

/// Of the cache that a core has for itself (a guess of 1 MiB where the system does not tell).
std::size_t level2_cache_bytes();

} // namespace diomp
