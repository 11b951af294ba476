// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/internal/copy_loops.h"

#include "base/sanitizer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#if defined(__x86_64__) && !DIOMP_THREAD_SANITIZER
#include "base/cpu_features.h"

#include <immintrin.h>
#define DIOMP_X86_LOOPS 1
#else
#define DIOMP_X86_LOOPS 0
#endif

namespace diomp::rma::loops {

#if DIOMP_X86_LOOPS
namespace {

using detail::loop;

/// The bytes before the first address that is a multiple of `alignment`.
std::size_t bytes_to_alignment(const void *address, std::size_t alignment) {
    return (alignment - reinterpret_cast<std::uintptr_t>(address) % alignment) % alignment;
}

// ---- Past the caches: whole cache lines, since partly written lines would be read first ----

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

stream_loop best_stream() {
    if (has_cpu_feature(cpu_feature::avx512f)) {
        return stream_avx512;
    }
    return has_cpu_feature(cpu_feature::avx2) ? stream_avx2 : stream_sse2;
}

const stream_loop stream_body = best_stream();

// ---- Through the caches ----

using vector256 = long long __attribute__((vector_size(32)));
using vector512 = long long __attribute__((vector_size(64)));

/// A vector at any alignment. Not accessed by memcpy, a call under the address sanitizer.
template <typename Vector>
struct [[gnu::packed, gnu::may_alias]] unaligned_vector {
    Vector vector;
};

/// Four consecutive vectors. An array would be stored on the stack.
template <typename Vector>
struct four {
    Vector a, b, c, d;

    [[gnu::always_inline]] static inline four load(const char *from) {
        auto const *const at = reinterpret_cast<const unaligned_vector<Vector> *>(from);
        return {at[0].vector, at[1].vector, at[2].vector, at[3].vector};
    }
    [[gnu::always_inline]] inline void store(char *to) const {
        auto *const at = reinterpret_cast<unaligned_vector<Vector> *>(to);
        at[0].vector = a;
        at[1].vector = b;
        at[2].vector = c;
        at[3].vector = d;
    }
};

/// Copies at least four vectors. Stores are aligned, since a store across a cache line costs two.
/// The first and the last store overlap their neighbours. Inlined into functions compiled for
/// processors that have such vectors.
template <typename Vector>
[[gnu::always_inline]] inline void copy_vectors_of(void *destination, const void *source,
                                                   std::size_t nbytes) {
    auto *const to = static_cast<char *>(destination);
    auto const *const from = static_cast<const char *>(source);
    constexpr std::size_t step = sizeof(Vector);
    std::size_t const last = nbytes - 4 * step;
    Vector const first = reinterpret_cast<const unaligned_vector<Vector> *>(from)->vector;
    auto const tail = four<Vector>::load(from + last);
    std::size_t done = step - reinterpret_cast<std::uintptr_t>(to) % step;
    reinterpret_cast<unaligned_vector<Vector> *>(to)->vector = first;
    for (; done < last; done += 4 * step) {
        four<Vector>::load(from + done).store(to + done);
    }
    tail.store(to + last);
}

__attribute__((target("avx2"))) int copy_256(void *destination, const void *source,
                                             std::size_t nbytes) noexcept {
    copy_vectors_of<vector256>(destination, source, nbytes);
    return 0;
}

__attribute__((target("avx512f"))) int copy_512(void *destination, const void *source,
                                                std::size_t nbytes) noexcept {
    copy_vectors_of<vector512>(destination, source, nbytes);
    return 0;
}

const bool fast_string_copy = has_cpu_feature(cpu_feature::fast_string_copy);

/// The shortest time of several trials, in seconds.
template <typename Copy>
double measure_seconds(Copy &&copy) {
    constexpr int trials = 5;
    constexpr int copies = 2;
    double best = std::numeric_limits<double>::max();
    for (int trial = 0; trial < trials; ++trial) {
        auto const begin = std::chrono::steady_clock::now();
        for (int i = 0; i < copies; ++i) {
            copy();
        }
        std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - begin;
        best = std::min(best, taken.count());
    }
    return best;
}

void benchmark_loops() {
    // Source offsets without and with accesses across cache lines.
    constexpr std::array<std::size_t, 2> shifts = {0, 24};
    constexpr std::size_t largest = std::size_t{64} << 10;
    constexpr std::size_t page = 4096;
    constexpr double noise_factor = 1.08; // ratio above which a difference is not noise
    auto const memory = std::make_unique<char[]>(2 * largest + 2 * page);
    char *const to = memory.get() + bytes_to_alignment(memory.get(), page);
    // At a different page offset, since equal ones cause false load-after-store dependences.
    const char *const from = to + largest + page / 4;
    auto const time_vectors = [&](loop how, std::size_t nbytes) {
        double sum = 0;
        for (std::size_t const shift : shifts) {
            sum += measure_seconds([&] { how(to, from + shift, nbytes); });
        }
        return sum;
    };
    constexpr std::size_t typical_bytes = 8192;
    loop const best = *std::ranges::min_element(
        vector_loops(), {}, [&](loop each) { return time_vectors(each, typical_bytes); });
    detail::g_vector_loop.store(best, std::memory_order_relaxed);
    // Vector loops may be faster while both sides are in the L1 cache, and slower from there on.
    for (std::size_t nbytes = largest / 2; nbytes <= largest; nbytes *= 2) {
        double const by_library = time_vectors(
            [](void *dst, const void *src, std::size_t count) noexcept {
                std::memcpy(dst, src, count);
                return 0;
            },
            nbytes);
        if (time_vectors(best, nbytes) > noise_factor * by_library) {
            detail::g_max_vector_bytes.store(nbytes / 2, std::memory_order_relaxed);
            return;
        }
    }
}

} // namespace

std::atomic<loop> detail::g_vector_loop{copy_256};
std::atomic<std::size_t> detail::g_max_vector_bytes{
    has_cpu_feature(cpu_feature::avx2) ? std::size_t{256} << 10 : 0};

std::span<const loop> vector_loops() {
    static constexpr std::array<loop, 2> all = {copy_256, copy_512};
    bool const has_any = has_cpu_feature(cpu_feature::avx2);
    bool const has_both = has_any && has_cpu_feature(cpu_feature::avx512f);
    return std::span(all).first(has_both ? 2 : has_any ? 1 : 0);
}

void copy_string(void *destination, const void *source, std::size_t nbytes) {
    if (!fast_string_copy) {
        std::memcpy(destination, source, nbytes);
        return;
    }
    asm volatile("rep movsb" : "+D"(destination), "+S"(source), "+c"(nbytes) : : "memory");
}

bool has_fast_string_copy() { return fast_string_copy; }

void start_streaming(void *destination, const void *source, std::size_t nbytes) {
    auto *to = static_cast<char *>(destination);
    auto const *from = static_cast<const char *>(source);
    std::size_t const head = std::min(bytes_to_alignment(to, 64), nbytes);
    std::memcpy(to, from, head);
    std::size_t const body = stream_body(to + head, from + head, nbytes - head);
    std::memcpy(to + head + body, from + head + body, nbytes - head - body);
}

void end_streaming() { _mm_sfence(); }

void calibrate() {
    // Not std::call_once: it uses thread-local data of libstdc++, which static TLS cannot address
    // if libstdc++ was loaded by dlopen.
    if (max_vector_bytes() != 0) {
        [[maybe_unused]] static bool const once = (benchmark_loops(), true);
    }
}

#else

constinit std::atomic<detail::loop> detail::g_vector_loop{nullptr};
constinit std::atomic<std::size_t> detail::g_max_vector_bytes{0};

std::span<const detail::loop> vector_loops() { return {}; }

void copy_string(void *destination, const void *source, std::size_t nbytes) {
    std::memcpy(destination, source, nbytes);
}

bool has_fast_string_copy() { return false; }

void start_streaming(void *destination, const void *source, std::size_t nbytes) {
    std::memcpy(destination, source, nbytes);
}

void end_streaming() {}

void calibrate() {}

#endif

} // namespace diomp::rma::loops
