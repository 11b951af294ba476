// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/copy.h"

#include "base/autotuner.h"
#include "base/cpu.h"
#include "base/per_thread.h"
#include "rma/internal/copy_loops.h"

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

/// Smallest tuned size. Below, the cache lines of both sides stay in the core's own cache.
constexpr std::size_t min_tuned_bytes = std::size_t{1} << 20;
constexpr std::size_t num_size_classes = 12; ///< powers of two; the last is open-ended
constexpr int num_warmup = 16;               ///< copies before the first trial

enum method : int { cached, streaming, string };

/// A thread's measurements of copy methods.
struct tuned_methods {
    std::array<autotuner, num_size_classes> by_size;

    tuned_methods() {
        bool const has_string_copy = loops::has_fast_string_copy();
        for (std::size_t i = 0; i < num_size_classes; ++i) {
            bool const is_long = (min_tuned_bytes << i) >= default_stream_threshold();
            by_size[i] = autotuner(is_long           ? streaming
                                   : has_string_copy ? string
                                                     : cached,
                                   has_string_copy ? 3 : 2, num_warmup);
        }
    }
};

void copy_with(int method, void *destination, const void *source, std::size_t nbytes) {
    if (method == streaming) {
        copy_streaming(destination, source, nbytes);
    } else if (method == string && !loops::string_copy_is_slow(destination, source)) {
        loops::copy_string(destination, source, nbytes);
    } else {
        copy_cached(destination, source, nbytes);
    }
}

void copy_with(autotuner &tuner, void *destination, const void *source, std::size_t nbytes) {
    if (!tuner.is_measuring()) { // reading the clock waits for earlier instructions
        copy_with(tuner.choice(), destination, source, nbytes);
        tuner.report(0);
        return;
    }
    auto const begin = std::chrono::steady_clock::now();
    copy_with(tuner.choice(), destination, source, nbytes);
    std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - begin;
    tuner.report(taken.count() / static_cast<double>(nbytes));
}

/// The index of [2^i, 2^(i + 1)) times `least`.
std::size_t size_class(std::size_t nbytes, std::size_t least) {
    return static_cast<std::size_t>(std::bit_width(nbytes / least) - 1);
}

void copy_tuned(void *destination, const void *source, std::size_t nbytes) {
    auto const index = std::min(size_class(nbytes, min_tuned_bytes), num_size_classes - 1);
    copy_with(per_thread<tuned_methods>::get().by_size[index], destination, source, nbytes);
}

/// A thread's last destinations of puts, and its measurements for others, of less than
/// min_tuned_bytes.
class new_destinations {
public:
    static constexpr std::size_t min_bytes = 4096;

    new_destinations() { by_size_.fill(autotuner(streaming, 2, num_warmup)); }

    /// Returns whether it is none of the last ones. Then it becomes the last one.
    bool add(const void *destination) {
        if (std::ranges::find(last_, destination) != last_.end()) {
            return false;
        }
        last_[next_++ % last_.size()] = destination;
        return true;
    }
    autotuner &tuner(std::size_t nbytes) { return by_size_[size_class(nbytes, min_bytes)]; }

private:
    std::array<const void *, 8> last_{};
    std::size_t next_ = 0;
    std::array<autotuner, std::bit_width(min_tuned_bytes / min_bytes) - 1> by_size_;
};

/// Not inlined, so that shorter copies save no registers.
[[gnu::noinline]] int copy_huge(void *destination, const void *source, std::size_t nbytes,
                                std::size_t stream_threshold) {
    if (stream_threshold == auto_threshold) {
        copy_tuned(destination, source, nbytes);
    } else {
        copy_streaming(destination, source, nbytes);
    }
    return 0;
}

} // namespace

int copy_cached(void *destination, const void *source, std::size_t nbytes) noexcept {
    if (nbytes >= loops::min_vector_bytes &&
        (nbytes <= loops::max_vector_bytes() || loops::string_copy_is_slow(destination, source))) {
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
    // A chunk stays in the L1 cache until it is copied to all destinations.
    constexpr std::size_t chunk_bytes = std::size_t{16} << 10;
    auto const *from = static_cast<const std::byte *>(source);
    std::size_t const step = destinations.size() > 1 ? chunk_bytes : nbytes;
    for (std::size_t at = 0; at < nbytes; at += step) {
        std::size_t const chunk = std::min(step, nbytes - at);
        for (std::byte *const to : destinations) {
            if (streaming) {
                loops::start_streaming(to + at, from + at, chunk);
            } else {
                copy_cached(to + at, from + at, chunk);
            }
        }
    }
    if (streaming) {
        loops::end_streaming();
    }
}

int copy_large(void *destination, const void *source, std::size_t nbytes,
               std::size_t stream_threshold) noexcept {
    if (nbytes < loops::min_vector_bytes || overlap(destination, source, nbytes)) {
        std::memmove(destination, source, nbytes);
        return 0;
    }
    if (nbytes < (stream_threshold == auto_threshold ? min_tuned_bytes : stream_threshold)) {
        return copy_cached(destination, source, nbytes);
    }
    return copy_huge(destination, source, nbytes, stream_threshold);
}

int copy_large_put(void *destination, const void *source, std::size_t nbytes,
                   std::size_t stream_threshold) noexcept {
    if (stream_threshold == auto_threshold && nbytes >= new_destinations::min_bytes &&
        nbytes < min_tuned_bytes && !overlap(destination, source, nbytes)) {
        auto &known = per_thread<new_destinations>::get();
        if (known.add(destination)) {
            copy_with(known.tuner(nbytes), destination, source, nbytes);
            return 0;
        }
    }
    return copy_large(destination, source, nbytes, stream_threshold);
}

void calibrate_copies() {
#if DIOMP_UPPER_REGISTERS
    __builtin_cpu_init();
    detail::g_has_upper_registers = __builtin_cpu_supports("avx512vl") != 0;
#endif
    loops::calibrate();
}

std::size_t default_stream_threshold() {
    // Above this size source and destination together exceed the core's share of the caches.
    // Measured on Zen 5 (1 MiB of L2): memmove is faster up to a few MiB, streaming stores from
    // there on (docs/benchmarks.md).
    return std::clamp<std::size_t>(4 * level2_cache_bytes(), std::size_t{1} << 20,
                                   std::size_t{16} << 20);
}

} // namespace diomp::rma
