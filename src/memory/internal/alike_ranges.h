// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ranges of a heap that are equal on all ranks: blocks of asymmetric memory where ranks of
// different nodes have the same slot (transport/arena.h). Then the address of a rank's own block
// is also the address of the other rank's block as that rank sees it, although the blocks differ in
// size: each rank reserves the size of the largest one. Memory is committed when it is touched, so
// this takes addresses, not memory.
//
// Ranks make the same calls in the same order, with the same arguments but `nbytes`, and their
// other blocks in the heap differ. A freed range therefore stays reserved for later blocks of this
// kind, unless no such range lies beyond it.
#pragma once

#include "memory/heap.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

namespace diomp::memory {

/// Not thread-safe. Distances are those of the heap, whose blocks grow from its end.
class alike_ranges {
public:
    struct request {
        std::size_t nbytes = 0;         ///< of this rank's block
        std::size_t max_bytes = 0;      ///< of the largest rank's block
        std::uint64_t extent_bytes = 0; ///< the largest extent of the ranks' heaps
        std::size_t alignment = heap::granule_bytes;
        std::uint64_t unit_bytes = heap::granule_bytes;
    };

    explicit alike_ranges(heap &from) : heap_(from) {}

    /// Offset of a new block, equal on all ranks; nullopt if there is no space. Only a block of
    /// this rank alone beyond extent_bytes can make that differ between ranks.
    std::optional<std::uint64_t> allocate(const request &wanted, std::uint64_t reach_limit);
    /// Frees the block that begins at `offset`; nullopt if it is none of these. `each_freed` is
    /// called with the free ranges of the heap, before they are reserved again.
    bool release(std::uint64_t offset, std::uint64_t reach_limit,
                 const std::function<void(const heap::released_block &)> &each_freed);

    /// Whether the block of the heap that begins at `offset` is reserved but free.
    [[nodiscard]] bool is_free(std::uint64_t offset) const;
    /// The free ranges, and the sum of their sizes.
    [[nodiscard]] std::size_t num_free() const { return free_.size(); }
    [[nodiscard]] std::uint64_t free_bytes() const { return free_bytes_; }

private:
    struct range {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };

    [[nodiscard]] range range_of(const heap::block &block) const;
    [[nodiscard]] std::uint64_t offset_of(range at) const {
        return heap_.capacity_bytes() - at.end;
    }
    std::optional<std::uint64_t> allocate_in_free(const request &wanted, std::uint64_t reserved);
    void reserve(range free);
    /// Gives a free range back to the heap.
    heap::released_block give_back(std::map<std::uint64_t, std::uint64_t>::iterator free);

    heap &heap_;
    std::map<std::uint64_t, std::uint64_t> live_; ///< begin -> end
    std::map<std::uint64_t, std::uint64_t> free_; ///< begin -> end; never adjacent
    std::uint64_t free_bytes_ = 0;
};

} // namespace diomp::memory
