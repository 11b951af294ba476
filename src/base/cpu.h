// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instructions and sizes that depend on the processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace diomp {

/// Distance that keeps two variables out of each other's cache line (adjacent-line prefetch not
/// counted).
inline constexpr std::size_t cache_line_bytes = 64;

/// Hints to the core that this is a polling loop.
inline void cpu_relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause(); // <immintrin.h> has 35 000 lines
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

/// Prefetches the cache line of `address` for writing.
inline void prefetch_for_writing(const void *address) {
#if defined(__x86_64__)
    // Compilers emit a prefetch for reading for __builtin_prefetch here.
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char *>(address)));
#else
    __builtin_prefetch(address, 1);
#endif
}

/// Copies `count` words one by one. Compilers merge two words into one wide load; after two narrow
/// stores of the same words that load waits until the store buffer is empty, including stores to
/// lines that must come from another core first.
inline void copy_words(std::uint64_t *to, const std::uint64_t *from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        __atomic_store_n(to + i, __atomic_load_n(from + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    }
}

/// Size of a core's own level 2 cache (1 MiB if the system does not report it).
std::size_t level2_cache_bytes();
/// Size of the level 3 cache that cores share (32 MiB if the system does not report it).
std::size_t level3_cache_bytes();

} // namespace diomp
