// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/copy.h"

#include <algorithm>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace diomp::rma {
namespace {

#if defined(__x86_64__)

/// The bytes before the first address that is a multiple of `alignment`.
std::size_t bytes_to_alignment(const void *address, std::size_t alignment) {
    return (alignment - reinterpret_cast<std::uintptr_t>(address) % alignment) % alignment;
}

// Both loops store whole cache lines: a partly written line would be read after all.
__attribute__((target("avx512f"))) std::size_t stream_avx512(char *to, const char *from,
                                                             std::size_t nbytes) {
    std::size_t done = 0;
    for (; done + 256 <= nbytes; done += 256) {
        __m512i const a = _mm512_loadu_si512(from + done);
        __m512i const b = _mm512_loadu_si512(from + done + 64);
        __m512i const c = _mm512_loadu_si512(from + done + 128);
        __m512i const d = _mm512_loadu_si512(from + done + 192);
        _mm512_stream_si512(reinterpret_cast<__m512i *>(to + done), a);
        _mm512_stream_si512(reinterpret_cast<__m512i *>(to + done + 64), b);
        _mm512_stream_si512(reinterpret_cast<__m512i *>(to + done + 128), c);
        _mm512_stream_si512(reinterpret_cast<__m512i *>(to + done + 192), d);
    }
    return done;
}

__attribute__((target("avx2"))) std::size_t stream_avx2(char *to, const char *from,
                                                        std::size_t nbytes) {
    std::size_t done = 0;
    for (; done + 128 <= nbytes; done += 128) {
        for (std::size_t i = 0; i < 128; i += 32) {
            __m256i const a =
                _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from + done + i));
            _mm256_stream_si256(reinterpret_cast<__m256i *>(to + done + i), a);
        }
    }
    return done;
}

std::size_t stream_sse2(char *to, const char *from, std::size_t nbytes) {
    std::size_t done = 0;
    for (; done + 64 <= nbytes; done += 64) {
        for (std::size_t i = 0; i < 64; i += 16) {
            __m128i const a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + done + i));
            _mm_stream_si128(reinterpret_cast<__m128i *>(to + done + i), a);
        }
    }
    return done;
}

using stream_loop = std::size_t (*)(char *, const char *, std::size_t);

stream_loop best_loop() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        return stream_avx512;
    }
    return __builtin_cpu_supports("avx2") ? stream_avx2 : stream_sse2;
}

const stream_loop stream_body = best_loop();

#endif

bool overlap(const void *a, const void *b, std::size_t nbytes) {
    auto const x = reinterpret_cast<std::uintptr_t>(a);
    auto const y = reinterpret_cast<std::uintptr_t>(b);
    return (x < y ? y - x : x - y) < nbytes;
}

} // namespace

void copy_streaming(void *destination, const void *source, std::size_t nbytes) {
#if defined(__x86_64__)
    auto *to = static_cast<char *>(destination);
    auto const *from = static_cast<const char *>(source);
    std::size_t const head = std::min(bytes_to_alignment(to, 64), nbytes);
    std::memcpy(to, from, head);
    std::size_t const body = stream_body(to + head, from + head, nbytes - head);
    std::memcpy(to + head + body, from + head + body, nbytes - head - body);
    _mm_sfence();
#else
    std::memcpy(destination, source, nbytes);
#endif
}

void copy_large(void *destination, const void *source, std::size_t nbytes,
                std::size_t stream_threshold) {
    if (nbytes < stream_threshold || overlap(destination, source, nbytes)) {
        std::memmove(destination, source, nbytes);
    } else {
        copy_streaming(destination, source, nbytes);
    }
}

std::size_t default_stream_threshold() {
    // Source and destination together stop fitting into the core's share of the caches: measured on
    // Zen 5 (1 MiB of L2), memmove wins up to a few MiB, streaming stores from there on
    // (docs/benchmarks.md).
    long const level2 = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    std::size_t const known = level2 > 0 ? static_cast<std::size_t>(level2) : std::size_t{1} << 20;
    return std::clamp<std::size_t>(4 * known, std::size_t{1} << 20, std::size_t{16} << 20);
}

} // namespace diomp::rma
