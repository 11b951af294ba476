// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/copy.h"

#include "base/best_way.h"
#include "base/cpu.h"
#include "base/per_thread.h"
#include "rma/copy_loops.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>

namespace diomp::rma {

#if DIOMP_UPPER_REGISTERS
bool detail::g_has_upper_registers = false;
#endif

namespace {

bool overlap(const void *a, const void *b, std::size_t nbytes) {
    auto const x = reinterpret_cast<std::uintptr_t>(a);
    auto const y = reinterpret_cast<std::uintptr_t>(b);
    return (x < y ? y - x : x - y) < nbytes;
}

/// From where on threads learn: below, the lines of both sides stay in the core's own cache.
constexpr std::size_t least_learned = std::size_t{1} << 20;
constexpr std::size_t num_learned = 12; ///< powers of two, the last one for all above
constexpr int num_cold = 16;            ///< copies before the first trial

/// What a thread has learned about copies.
struct learned_ways {
    enum way : int { cached, streaming, string };
    std::array<best_way, num_learned> by_size;

    learned_ways() {
        bool const has_strings = loops::has_quick_strings();
        for (std::size_t i = 0; i < num_learned; ++i) {
            bool const is_long = (least_learned << i) >= default_stream_threshold();
            by_size[i] = best_way(is_long       ? streaming
                                  : has_strings ? string
                                                : cached,
                                  has_strings ? 3 : 2, num_cold);
        }
    }
};

void copy_by(int way, void *destination, const void *source, std::size_t nbytes) {
    if (way == learned_ways::streaming) {
        copy_streaming(destination, source, nbytes);
    } else if (way == learned_ways::string && !loops::trips_strings(destination, source)) {
        loops::copy_string(destination, source, nbytes);
    } else {
        copy_cached(destination, source, nbytes);
    }
}

void copy_learned(void *destination, const void *source, std::size_t nbytes) {
    auto const index = static_cast<std::size_t>(std::bit_width(nbytes / least_learned) - 1);
    best_way &best = per_thread<learned_ways>::get().by_size[std::min(index, num_learned - 1)];
    if (!best.is_trying()) { // to look at the clock waits for what goes before
        copy_by(best.choice(), destination, source, nbytes);
        best.tell(0);
        return;
    }
    auto const begin = std::chrono::steady_clock::now();
    copy_by(best.choice(), destination, source, nbytes);
    std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - begin;
    best.tell(taken.count() / static_cast<double>(nbytes));
}

/// Apart, so that shorter copies save no registers.
[[gnu::noinline]] int copy_huge(void *destination, const void *source, std::size_t nbytes,
                                std::size_t stream_threshold) {
    if (stream_threshold == learned_threshold) {
        copy_learned(destination, source, nbytes);
    } else {
        copy_streaming(destination, source, nbytes);
    }
    return 0;
}

} // namespace

int copy_cached(void *destination, const void *source, std::size_t nbytes) noexcept {
    if (nbytes >= loops::least_vectors &&
        (nbytes <= loops::most_vectors() || loops::trips_strings(destination, source))) {
        return loops::copy_vectors(destination, source, nbytes);
    }
    std::memcpy(destination, source, nbytes);
    return 0;
}

void copy_streaming(void *destination, const void *source, std::size_t nbytes) {
    loops::start_streaming(destination, source, nbytes);
    loops::end_streaming();
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
                loops::start_streaming(to + at, from + at, piece);
            } else {
                copy_cached(to + at, from + at, piece);
            }
        }
    }
    if (streaming) {
        loops::end_streaming();
    }
}

int copy_large(void *destination, const void *source, std::size_t nbytes,
               std::size_t stream_threshold) noexcept {
    if (nbytes < loops::least_vectors || overlap(destination, source, nbytes)) {
        std::memmove(destination, source, nbytes);
        return 0;
    }
    if (nbytes < (stream_threshold == learned_threshold ? least_learned : stream_threshold)) {
        return copy_cached(destination, source, nbytes);
    }
    return copy_huge(destination, source, nbytes, stream_threshold);
}

void calibrate_copies() {
#if DIOMP_UPPER_REGISTERS
    __builtin_cpu_init();
    detail::g_has_upper_registers = __builtin_cpu_supports("avx512vl") != 0;
#endif
    loops::calibrate();
}

std::size_t default_stream_threshold() {
    // Source and destination together stop fitting into the core's share of the caches: measured on
    // Zen 5 (1 MiB of L2), memmove wins up to a few MiB, streaming stores from there on
    // (docs/benchmarks.md).
    return std::clamp<std::size_t>(4 * level2_cache_bytes(), std::size_t{1} << 20,
                                   std::size_t{16} << 20);
}

} // namespace diomp::rma
