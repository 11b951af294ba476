// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loops that copies are made of, and which of them suit this processor.
//
// On other processors than x86-64, and under the thread sanitizer, which sees memcpy whole but no
// vectors, there is memcpy only. Ranges must not overlap.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::rma::loops {

/// Below, the library's memcpy is as quick as anything.
inline constexpr std::size_t least_vectors = 1024;

namespace detail {
/// Returns 0, as copy_large in copy.h, which ends in it.
using loop = int (*)(void *, const void *, std::size_t) noexcept;
extern std::atomic<loop> g_vectors; ///< chosen by calibrate()
extern std::atomic<std::size_t> g_most_vectors;
} // namespace detail

/// Vectors through the caches, with aligned stores. At least least_vectors.
inline int copy_vectors(void *destination, const void *source, std::size_t nbytes) noexcept {
    return detail::g_vectors.load(std::memory_order_relaxed)(destination, source, nbytes);
}
/// Up to so many bytes they are quicker than memcpy; 0: never.
inline std::size_t most_vectors() { return detail::g_most_vectors.load(std::memory_order_relaxed); }

/// Those to choose from on this processor.
std::span<const detail::loop> vector_loops();

/// By "rep movsb", where the processor makes that work in cache lines (ERMS); else as memcpy.
void copy_string(void *destination, const void *source, std::size_t nbytes);
[[nodiscard]] bool has_quick_strings();

/// Whether memcpy and copy_string may be many times slower than they should be: on Zen 4 "rep
/// movsb" falls to 3.5 GB/s where the destination lies 1 to 15 bytes behind the source within their
/// pages (glibc's bug 30994). Vectors do not.
inline bool trips_strings(const void *destination, const void *source) {
    constexpr std::uintptr_t page_bytes = 4096;
    auto const behind =
        (reinterpret_cast<std::uintptr_t>(destination) - reinterpret_cast<std::uintptr_t>(source)) %
        page_bytes;
    return most_vectors() != 0 && behind - 1 < 15;
}

/// Stores past the caches; visible to others after end_streaming.
void start_streaming(void *destination, const void *source, std::size_t nbytes);
void end_streaming();

/// Finds out by trial, in some 100 us, how wide vectors should be here and up to which size they
/// are better than memcpy. Any thread; the first call counts. Before it a guess is in use.
void calibrate();

} // namespace diomp::rma::loops
