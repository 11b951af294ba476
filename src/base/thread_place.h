// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of a few places is the calling thread's. Not its own variable: those are gone when the last
// fence runs, at the end of the process.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <pthread.h>

namespace diomp {

/// Below `NumPlaces`, a power of two; always the same for a thread, and perhaps for some others.
template <std::size_t NumPlaces>
std::size_t thread_place() {
    static_assert(std::has_single_bit(NumPlaces) && NumPlaces > 1);
    // Threads lie pages apart, at least.
    auto const where = static_cast<std::uint64_t>(::pthread_self()) >> 12U;
    return (where * 0x9e3779b97f4a7c15U) >> (64U - std::countr_zero(NumPlaces));
}

} // namespace diomp
