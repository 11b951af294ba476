// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layout of a rank's slot of the arena: first the runtime's part, then the segment, from which the
// program allocates.
#pragma once

#include "base/cpu.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace diomp::memory {

/// Size of the runtime's part: published state and the workspaces of groups. Committed on touch.
inline constexpr std::size_t internal_bytes = std::size_t{64} << 20;

/// At the start of every slot, initially zero. Written by its owner and read by other ranks, except
/// the locks.
struct published_state {
    /// Changes when the owner unregisters a range. Ranges cached by other ranks are invalid then.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> registration_generation;
    /// Changes before the owner frees device memory that a rank of its node has looked up.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> device_generation;
    /// Changes after the owner has committed memory on one of its devices.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> device_commits;
    /// The locks whose target is the owner. Format: sync/internal/lock_word.h.
    struct alignas(cache_line_bytes) lock {
        std::atomic<std::uint64_t> word;
    };
    lock rank_lock;
    lock thread_lock;
};

/// The symmetric second-level pointer of an asymmetric allocation: the address of this rank's block
/// (DiOMP 2024). A free changes the generation, so that stale copies in other ranks' caches are
/// detected.
struct second_level_pointer {
    std::uint64_t base = 0; ///< in the owner's address space
    std::uint64_t nbytes = 0;
    std::uint64_t generation = 0;
    std::uint64_t check = 0; ///< detects pointers that were never written, or overwritten

    [[nodiscard]] std::uint64_t expected_check() const {
        return ~(base ^ (nbytes << 1) ^ (generation << 2));
    }
};
static_assert(sizeof(second_level_pointer) == 32);

} // namespace diomp::memory
