// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What lies where in a rank's slot of the window: first the runtime's own part, then the segment
// that the program's allocations come from.
#pragma once

#include "base/cpu.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace diomp::memory {

/// Size of the runtime's part: what ranks publish, and the workspaces of groups. Committed on
/// touch.
inline constexpr std::size_t internal_bytes = std::size_t{64} << 20;

/// At the start of every slot, zero at first. Written by its owner and read by the others, but for
/// the locks.
struct published_state {
    /// Changes whenever the owner unregisters a range: what others have cached about its ranges is
    /// void then.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> registration_generation;
    /// Changes before the owner frees device memory that a rank of its node has asked about.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> device_generation;
    /// The locks that live at the owner, as sync/lock_word.h reads them.
    struct alignas(cache_line_bytes) lock {
        std::atomic<std::uint64_t> word;
    };
    lock rank_lock;
    lock thread_lock;
};

/// The symmetric second-level pointer of an asymmetric allocation: where this rank's part is (DiOMP
/// 2024). A free changes the generation, so that a stale copy in another rank's cache can be told.
struct second_level_pointer {
    std::uint64_t base = 0; ///< as the owner sees it
    std::uint64_t nbytes = 0;
    std::uint64_t generation = 0;
    std::uint64_t check =
        0; ///< makes a pointer that was never written, or overwritten, recognisable

    [[nodiscard]] std::uint64_t expected_check() const {
        return ~(base ^ (nbytes << 1) ^ (generation << 2));
    }
};
static_assert(sizeof(second_level_pointer) == 32);

} // namespace diomp::memory
