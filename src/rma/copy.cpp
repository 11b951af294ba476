// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/copy.h"

#include "base/autotuner.h"
#include "base/cpu.h"
#include "base/cpu_features.h"
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

/// Sizes from which a method is measured: where the destination is new to the thread (puts), where
/// it is not or the copy is a get, and where stores past the caches may always pay.
constexpr std::size_t min_new_bytes = 4096;
constexpr std::size_t min_known_bytes = std::size_t{32} << 10;
constexpr std::size_t min_long_bytes = std::size_t{1} << 20;
constexpr std::size_t num_long_classes = 12; ///< powers of two; the last is open-ended
constexpr int num_warmup = 16;               ///< copies before the first trial
/// Copies that exceed the core's caches, after a change of the method, that take another time
/// because of what the other one has left in the shared cache. Measured: 7 of 16 MiB with 32 MiB of
/// cache.
constexpr int num_transient_long = 9;

/// The index of [2^i, 2^(i + 1)) times `least`.
constexpr std::size_t size_class(std::size_t nbytes, std::size_t least) {
    return static_cast<std::size_t>(std::bit_width(nbytes / least) - 1);
}
constexpr std::size_t num_short_classes = size_class(min_long_bytes, min_new_bytes);

/// Processors without fast string copies have the first two.
enum method : int { cached, streaming, string };

/// Chooses among all methods.
autotuner make_tuner(method preferred, int num_transient) {
    bool const has_string = loops::has_fast_string_copy();
    return autotuner(preferred == string && !has_string ? cached : preferred, has_string ? 3 : 2,
                     num_warmup, num_transient);
}

void copy_with(int method, void *destination, const void *source, std::size_t nbytes) {
    if (method == streaming) {
        copy_streaming(destination, source, nbytes);
    } else if (method == string && !loops::string_copy_is_slow(destination, source)) {
        loops::copy_string(destination, source, nbytes);
    } else {
        copy_cached(destination, source, nbytes);
    }
}

/// A thread's measurements of copy methods, by size, and its last destinations. Two of them, since
/// a put's destination and a get's source are in the caches of another core.
template <bool IsPut>
class tuned_copies {
public:
    tuned_copies() {
        for (std::size_t i = 0; i < num_long_classes; ++i) {
            bool const is_long = (min_long_bytes << i) >= default_stream_threshold();
            long_[i] = is_long ? make_tuner(streaming, num_transient_long) : make_tuner(string, 1);
        }
        new_.fill(make_tuner(IsPut ? streaming : cached, 1));
        // Both sides may be in the caches, so stores past them are not tried.
        known_.fill(autotuner(0, 2, num_warmup));
    }

    void copy(void *destination, const void *source, std::size_t nbytes) {
        if (nbytes >= min_long_bytes) {
            auto const index = std::min(size_class(nbytes, min_long_bytes), num_long_classes - 1);
            measure(long_[index], destination, source, nbytes, streaming);
            return;
        }
        std::size_t const index = size_class(nbytes, min_new_bytes);
        if (add(destination)) {
            measure(new_[index], destination, source, nbytes, streaming);
        } else if (nbytes >= min_known_bytes && loops::has_fast_string_copy()) {
            measure(known_[index], destination, source, nbytes, string);
        } else {
            copy_cached(destination, source, nbytes);
        }
    }

private:
    /// Returns whether it is none of the last ones. Then it becomes the last one.
    bool add(const void *destination) {
        if (std::ranges::find(last_, destination) != last_.end()) {
            return false;
        }
        last_[next_++ % last_.size()] = destination;
        return true;
    }
    /// `second`: method 1 of the tuner.
    static void measure(autotuner &tuner, void *destination, const void *source, std::size_t nbytes,
                        method second) {
        int const how = tuner.choice() == 1 ? second : tuner.choice();
        if (!tuner.is_measuring()) { // reading the clock waits for earlier instructions
            copy_with(how, destination, source, nbytes);
            tuner.report(0);
            return;
        }
        auto const begin = std::chrono::steady_clock::now();
        copy_with(how, destination, source, nbytes);
        std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - begin;
        tuner.report(taken.count() / static_cast<double>(nbytes));
    }

    std::array<autotuner, num_long_classes> long_;
    std::array<autotuner, num_short_classes> new_;
    std::array<autotuner, num_short_classes> known_;
    std::array<const void *, 8> last_{};
    std::size_t next_ = 0;
};

/// Not inlined, so that shorter copies save no registers.
template <bool IsPut>
[[gnu::noinline]] int copy_tuned(void *destination, const void *source, std::size_t nbytes) {
    per_thread<tuned_copies<IsPut>>::get().copy(destination, source, nbytes);
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
    if (nbytes < (stream_threshold == auto_threshold ? min_known_bytes : stream_threshold)) {
        return copy_cached(destination, source, nbytes);
    }
    if (stream_threshold == auto_threshold) {
        return copy_tuned<false>(destination, source, nbytes);
    }
    copy_streaming(destination, source, nbytes);
    return 0;
}

int copy_large_put(void *destination, const void *source, std::size_t nbytes,
                   std::size_t stream_threshold) noexcept {
    if (stream_threshold == auto_threshold && nbytes >= min_new_bytes &&
        !overlap(destination, source, nbytes)) {
        return copy_tuned<true>(destination, source, nbytes);
    }
    return copy_large(destination, source, nbytes, stream_threshold);
}

void calibrate_copies() {
#if DIOMP_UPPER_REGISTERS
    detail::g_has_upper_registers = has_cpu_feature(cpu_feature::avx512vl);
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
