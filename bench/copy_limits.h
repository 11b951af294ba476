// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The fastest copies between two buffers on this machine: memcpy, and stores that bypass the
// caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace diomp::bench {

#if defined(__x86_64__)

namespace detail {

__attribute__((target("avx512f"))) inline void stream_512(char *dst, const char *src,
                                                          std::size_t nbytes) {
    for (std::size_t i = 0; i < nbytes; i += 64) {
        _mm512_stream_si512(reinterpret_cast<__m512i *>(dst + i), _mm512_loadu_si512(src + i));
    }
}

__attribute__((target("avx2"))) inline void stream_256(char *dst, const char *src,
                                                       std::size_t nbytes) {
    for (std::size_t i = 0; i < nbytes; i += 32) {
        const auto value = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(src + i));
        _mm256_stream_si256(reinterpret_cast<__m256i *>(dst + i), value);
    }
}

inline void stream_128(char *dst, const char *src, std::size_t nbytes) {
    for (std::size_t i = 0; i < nbytes; i += 16) {
        const auto value = _mm_loadu_si128(reinterpret_cast<const __m128i *>(src + i));
        _mm_stream_si128(reinterpret_cast<__m128i *>(dst + i), value);
    }
}

} // namespace detail

inline constexpr bool has_stream_copy = true;

/// Copies with streaming stores. dst must be 64-byte aligned. The fence at the end is part of the
/// cost: without it the data would not become visible to the peer in order.
inline void stream_copy(void *dst, const void *src, std::size_t nbytes) {
    static const bool wide = __builtin_cpu_supports("avx512f") != 0;
    static const bool middle = __builtin_cpu_supports("avx2") != 0;
    auto *to = static_cast<char *>(dst);
    const auto *from = static_cast<const char *>(src);
    const std::size_t streamed = nbytes / 64 * 64;
    if (wide) {
        detail::stream_512(to, from, streamed);
    } else if (middle) {
        detail::stream_256(to, from, streamed);
    } else {
        detail::stream_128(to, from, streamed);
    }
    std::memcpy(to + streamed, from + streamed, nbytes - streamed);
    _mm_sfence();
}

#else

inline constexpr bool has_stream_copy = false;
inline void stream_copy(void *dst, const void *src, std::size_t nbytes) {
    std::memcpy(dst, src, nbytes);
}

#endif

/// A memcpy that the compiler can neither remove nor merge with the next one.
inline void plain_copy(void *dst, const void *src, std::size_t nbytes) {
    std::memcpy(dst, src, nbytes);
    asm volatile("" ::: "memory");
}

} // namespace diomp::bench
