// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Maps the calling thread to one of a few slots. Does not use a thread-local variable: those are
// destroyed before the last fence, at the end of the process.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <pthread.h>

namespace diomp {

/// Below `NumSlots`, a power of two; constant for a thread, and perhaps shared with other threads.
template <std::size_t NumSlots>
std::size_t thread_slot() {
    static_assert(std::has_single_bit(NumSlots) && NumSlots > 1);
    // Thread descriptors are at least a page apart.
    auto const where = static_cast<std::uint64_t>(::pthread_self()) >> 12U;
    return (where * 0x9e3779b97f4a7c15U) >> (64U - std::countr_zero(NumSlots));
}

} // namespace diomp
