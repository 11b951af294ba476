// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copy loops, and the choice among them for this processor.
//
// Other processors than x86-64 use memcpy only. So does the thread sanitizer, which instruments
// memcpy but no vector accesses. Ranges must not overlap.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::rma::loops {

/// Smallest size for vector loops. Below, the library's memcpy is as fast.
inline constexpr std::size_t min_vector_bytes = 1024;

namespace detail {
/// Returns 0: copy_large (copy.h) ends in a tail call of it.
using loop = int (*)(void *, const void *, std::size_t) noexcept;
extern std::atomic<loop> g_vector_loop; ///< chosen by calibrate()
extern std::atomic<std::size_t> g_max_vector_bytes;
} // namespace detail

/// Copies at least min_vector_bytes through the caches by vectors, with aligned stores.
inline int copy_vectors(void *destination, const void *source, std::size_t nbytes) noexcept {
    return detail::g_vector_loop.load(std::memory_order_relaxed)(destination, source, nbytes);
}
/// Size up to which vector loops are faster than memcpy; 0: never.
inline std::size_t max_vector_bytes() {
    return detail::g_max_vector_bytes.load(std::memory_order_relaxed);
}

/// The vector loops that this processor can execute.
std::span<const detail::loop> vector_loops();

/// Copies by "rep movsb" where the processor moves cache lines with it (ERMS); elsewhere by memcpy.
void copy_string(void *destination, const void *source, std::size_t nbytes);
[[nodiscard]] bool has_fast_string_copy();

/// Whether memcpy and copy_string may be many times slower than usual: on Zen 4 "rep movsb" drops
/// to 3.5 GB/s where the destination lies 1 to 15 bytes after the source within their pages (glibc
/// bug 30994). Vector loops are not affected.
inline bool string_copy_is_slow(const void *destination, const void *source) {
    constexpr std::uintptr_t page_bytes = 4096;
    auto const behind =
        (reinterpret_cast<std::uintptr_t>(destination) - reinterpret_cast<std::uintptr_t>(source)) %
        page_bytes;
    return max_vector_bytes() != 0 && behind - 1 < 15;
}

/// Copies with stores past the caches; visible to other cores after end_streaming.
void start_streaming(void *destination, const void *source, std::size_t nbytes);
void end_streaming();

/// Selects, by measurements of some 100 us, the vector width and the size up to which vector loops
/// are faster than memcpy. Any thread; only the first call measures. Before it an estimate is in
/// use.
void calibrate();

} // namespace diomp::rma::loops
