// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The few instructions and sizes that depend on the processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace diomp {

/// Distance that keeps two variables out of each other's cache line (adjacent-line prefetch not
/// counted).
inline constexpr std::size_t cache_line_bytes = 64;

/// Tells the core that this is a polling loop.
inline void cpu_relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause(); // all of <immintrin.h> has 35 000 lines
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

/// Asks for the cache line of `place`, to be written soon.
inline void prefetch_for_writing(const void *place) {
#if defined(__x86_64__)
    // What compilers make of __builtin_prefetch here is a prefetch for reading.
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char *>(place)));
#else
    __builtin_prefetch(place, 1);
#endif
}

/// Copies `count` words one by one. Compilers make two words one wide load; behind two narrow
/// stores of the same words that load waits until the store buffer is empty, also of a line that
/// has to come from another core first.
inline void copy_words(std::uint64_t *to, const std::uint64_t *from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        __atomic_store_n(to + i, __atomic_load_n(from + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    }
}

/// Of the cache that a core has for itself (a guess of 1 MiB where the system does not tell).
std::size_t level2_cache_bytes();

} // namespace diomp
