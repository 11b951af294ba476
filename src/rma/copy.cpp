// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/copy.h"

#include "base/cpu.h"
#include "base/two_ways.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <memory>

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

using vector = __m256i;

__attribute__((target("avx2"))) inline vector load(const char *from) {
    return _mm256_loadu_si256(reinterpret_cast<const vector *>(from));
}

__attribute__((target("avx2"))) inline void store(char *to, vector value) {
    _mm256_storeu_si256(reinterpret_cast<vector *>(to), value);
}

/// At least 128 bytes. Stores are aligned, since one that crosses a cache line costs two; the first
/// and the last ones overlap their neighbours. Vectors of 64 bytes are no quicker on Zen 5 and
/// slower where sources lie across lines.
__attribute__((target("avx2"))) void copy_vectors(char *to, const char *from, std::size_t nbytes) {
    vector const head = load(from);
    vector const tail0 = load(from + nbytes - 128);
    vector const tail1 = load(from + nbytes - 96);
    vector const tail2 = load(from + nbytes - 64);
    vector const tail3 = load(from + nbytes - 32);
    std::size_t done = 32 - reinterpret_cast<std::uintptr_t>(to) % 32;
    store(to, head);
    for (; done + 128 < nbytes; done += 128) {
        vector const a = load(from + done);
        vector const b = load(from + done + 32);
        vector const c = load(from + done + 64);
        vector const d = load(from + done + 96);
        store(to + done, a);
        store(to + done + 32, b);
        store(to + done + 64, c);
        store(to + done + 96, d);
    }
    store(to + nbytes - 128, tail0);
    store(to + nbytes - 96, tail1);
    store(to + nbytes - 64, tail2);
    store(to + nbytes - 32, tail3);
}

/// From where the second-level cache sets the pace, memcpy is as quick. None under the thread
/// sanitizer, which sees memcpy whole, but no vectors.
const std::size_t most_vectors =
    DIOMP_THREAD_SANITIZER == 0 && __builtin_cpu_supports("avx2") != 0 ? std::size_t{256} << 10 : 0;

/// Whether memcpy may be many times slower than it should be. The C library's uses "rep movsb" for
/// such sizes, and on Zen 4 that falls to 3.5 GB/s where the destination lies 1 to 15 bytes behind
/// the source within their pages (glibc's bug 30994).
bool trips_memcpy(const void *destination, const void *source) {
    constexpr std::size_t page_bytes = 4096;
    auto const behind =
        (reinterpret_cast<std::uintptr_t>(destination) - reinterpret_cast<std::uintptr_t>(source)) %
        page_bytes;
    return most_vectors != 0 && behind - 1 < 15;
}

#endif

/// Below, the library's memcpy is as quick as anything.
constexpr std::size_t least_own = 1024;

bool overlap(const void *a, const void *b, std::size_t nbytes) {
    auto const x = reinterpret_cast<std::uintptr_t>(a);
    auto const y = reinterpret_cast<std::uintptr_t>(b);
    return (x < y ? y - x : x - y) < nbytes;
}

/// From where on threads learn: below, the lines of both sides stay in the core's own cache.
constexpr std::size_t least_learned = std::size_t{1} << 20;
constexpr std::size_t num_learned = 12; ///< powers of two, the last one for all above

/// What a thread has learned about copies through the caches (way 0) and past them (way 1).
struct learned_ways {
    std::array<two_ways, num_learned> by_size;

    learned_ways() {
        for (std::size_t i = 0; i < num_learned; ++i) {
            by_size[i] = two_ways((least_learned << i) >= default_stream_threshold() ? 1 : 0);
        }
    }
};

void copy_learned(void *destination, const void *source, std::size_t nbytes) {
    // Apart from the thread's own storage, of which little is left when the library is opened late.
    thread_local auto const ways = std::make_unique<learned_ways>();
    auto const index = static_cast<std::size_t>(std::bit_width(nbytes / least_learned) - 1);
    two_ways &way = ways->by_size[std::min(index, num_learned - 1)];
    auto const begin = std::chrono::steady_clock::now();
    if (way.choice() == 1) {
        copy_streaming(destination, source, nbytes);
    } else {
        copy_cached(destination, source, nbytes);
    }
    std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - begin;
    way.tell(taken.count() / static_cast<double>(nbytes));
}

/// Stores past the caches, visible to others after end_streaming.
void start_streaming(void *destination, const void *source, std::size_t nbytes) {
#if defined(__x86_64__)
    auto *to = static_cast<char *>(destination);
    auto const *from = static_cast<const char *>(source);
    std::size_t const head = std::min(bytes_to_alignment(to, 64), nbytes);
    std::memcpy(to, from, head);
    std::size_t const body = stream_body(to + head, from + head, nbytes - head);
    std::memcpy(to + head + body, from + head + body, nbytes - head - body);
#else
    std::memcpy(destination, source, nbytes);
#endif
}

void end_streaming() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

/// Apart, so that shorter copies save no registers.
[[gnu::noinline]] void copy_huge(void *destination, const void *source, std::size_t nbytes,
                                 std::size_t stream_threshold) {
    if (stream_threshold == learned_threshold) {
        copy_learned(destination, source, nbytes);
    } else {
        copy_streaming(destination, source, nbytes);
    }
}

} // namespace

void copy_cached(void *destination, const void *source, std::size_t nbytes) {
#if defined(__x86_64__)
    if (nbytes >= least_own && (nbytes <= most_vectors || trips_memcpy(destination, source))) {
        copy_vectors(static_cast<char *>(destination), static_cast<const char *>(source), nbytes);
        return;
    }
#endif
    std::memcpy(destination, source, nbytes);
}

void copy_streaming(void *destination, const void *source, std::size_t nbytes) {
    start_streaming(destination, source, nbytes);
    end_streaming();
}

void copy_to_all(std::span<std::byte *const> destinations, const void *source, std::size_t nbytes,
                 bool streaming) {
    // A piece stays in the core's first cache until it has gone everywhere.
    constexpr std::size_t piece_bytes = std::size_t{16} << 10;
    auto const *from = static_cast<const std::byte *>(source);
    std::size_t const step = destinations.size() > 1 ? piece_bytes : nbytes;
    for (std::size_t at = 0; at < nbytes; at += step) {
        std::size_t const piece = std::min(step, nbytes - at);
        for (std::byte *const to : destinations) {
            if (streaming) {
                start_streaming(to + at, from + at, piece);
            } else {
                copy_cached(to + at, from + at, piece);
            }
        }
    }
    if (streaming) {
        end_streaming();
    }
}

void copy_large(void *destination, const void *source, std::size_t nbytes,
                std::size_t stream_threshold) {
    if (nbytes < least_own || overlap(destination, source, nbytes)) {
        std::memmove(destination, source, nbytes);
    } else if (nbytes <
               (stream_threshold == learned_threshold ? least_learned : stream_threshold)) {
        copy_cached(destination, source, nbytes);
    } else {
        copy_huge(destination, source, nbytes, stream_threshold);
    }
}

std::size_t default_stream_threshold() {
    // Source and destination together stop fitting into the core's share of the caches: measured on
    // Zen 5 (1 MiB of L2), memmove wins up to a few MiB, streaming stores from there on
    // (docs/benchmarks.md).
    return std::clamp<std::size_t>(4 * level2_cache_bytes(), std::size_t{1} << 20,
                                   std::size_t{16} << 20);
}

} // namespace diomp::rma
