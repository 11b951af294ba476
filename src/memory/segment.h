// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calling rank's segment: the symmetric heap grows from the front, asymmetric and local data
// from the end. This class does not communicate. Symmetric allocation calls it on every rank and
// compares the results (runtime/allocation).
#pragma once

#include "diomp/types.h"
#include "memory/heap.h"
#include "memory/layout.h"
#include "transport/arena.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>

namespace diomp::memory {

class alike_ranges;
class shadow;

/// An allocation of this rank.
struct allocation {
    ompx_mem_kind_t kind = OMPX_MEM_NONE;
    std::uint64_t offset = 0; ///< from the start of the segment
    std::size_t nbytes = 0;   ///< as requested
};

/// Another rank's block of an asymmetric allocation, read from its second-level pointer.
struct remote_block {
    std::uint64_t base = 0;
    std::uint64_t nbytes = 0;
    std::uint64_t generation = 0;
};

/// Data for the translation of an address inside this rank's asymmetric block.
struct asymmetric_view {
    std::uint64_t offset = 0; ///< of this rank's block
    std::size_t nbytes = 0;
    std::uint64_t pointer_offset = 0;   ///< of the second-level pointer, the same on all ranks
    std::optional<remote_block> remote; ///< of the requested rank, if cached
};

/// Any thread.
class segment {
public:
    /// Limit of cached second-level pointers. When it is exceeded, all are dropped.
    static constexpr std::size_t max_cached_remote = 16384;
    static constexpr std::size_t large_bytes = std::size_t{1} << 20;
    static constexpr std::size_t page_bytes = 4096; ///< the same on all hosts, as offsets are

    /// `core_bytes`: limit of the allocated bytes that core files include.
    segment(const transport::arena &arena, world_rank owner, local_rank local_index,
            std::size_t core_bytes = 0);
    ~segment();
    segment(const segment &) = delete;
    segment &operator=(const segment &) = delete;

    [[nodiscard]] std::byte *base() const { return base_; }
    [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }
    /// The memory of this rank's host devices, after the segment.
    [[nodiscard]] std::span<std::byte> device_area() const {
        return {base_ - internal_bytes + arena_.device_offset(), arena_.device_bytes()};
    }
    /// Upper end of the symmetric heap. Addresses below it translate by offset. One relaxed load.
    [[nodiscard]] std::uint64_t symmetric_extent() const {
        return symmetric_extent_.load(std::memory_order_relaxed);
    }

    /// Allocate, or fail with an error that names the requested, used and free sizes and the
    /// setting to change. Blocks from large_bytes up occupy whole pages of page_bytes.
    result<std::uint64_t> allocate_symmetric(std::size_t nbytes, std::size_t alignment);
    result<std::uint64_t> allocate_local(std::size_t nbytes, std::size_t alignment);
    /// Allocates this rank's block and its second-level pointer; returns the block's offset. Only
    /// if the arena's slots are not shared.
    result<std::uint64_t> allocate_asymmetric(std::size_t nbytes, std::size_t alignment);

    /// Ranks of different nodes share slots: blocks of an asymmetric allocation must begin at the
    /// same offset on all ranks (internal/alike_ranges.h).
    [[nodiscard]] bool needs_alike_blocks() const { return arena_.shares_slots(); }
    /// Largest values of all ranks.
    struct alike_bounds {
        std::uint64_t max_bytes = 0;    ///< of a block
        std::uint64_t extent_bytes = 0; ///< private_extent()
    };
    /// Bytes from the end of the segment to the far end of its outermost private block.
    [[nodiscard]] std::uint64_t private_extent() const;
    /// allocate_asymmetric() where blocks must be alike. OMPX_ERR_STATE: another thread has
    /// allocated private memory beyond the extent; exchange the extents again.
    result<std::uint64_t> allocate_alike(std::size_t nbytes, std::size_t alignment,
                                         const alike_bounds &of_all);

    /// The allocation that contains the offset, if any. Compare with allocation::offset to require
    /// its start.
    [[nodiscard]] std::optional<allocation> find(std::uint64_t offset) const;
    /// Offset of the second-level pointer of the asymmetric allocation that starts there.
    [[nodiscard]] std::optional<std::uint64_t> pointer_of(std::uint64_t offset) const;
    /// Frees the allocation that starts at `offset` and returns whole pages to the system. The
    /// caller ensures that the free is allowed.
    void release(std::uint64_t offset);
    /// Sets a function that every release() calls first; null removes it. Not concurrently with
    /// release().
    void before_release(std::function<void(std::uint64_t offset)> call) {
        before_release_ = std::move(call);
    }

    [[nodiscard]] std::optional<asymmetric_view> find_asymmetric(std::uint64_t offset,
                                                                 world_rank peer) const;
    void cache_remote(std::uint64_t offset, world_rank peer, const remote_block &block);

    [[nodiscard]] ompx_segment_info_t info() const;

    /// Space in the runtime's part of the slot; offset from the start of the slot. nullopt: full,
    /// or there would not be a free block of `spare` bytes any more.
    std::optional<std::uint64_t> allocate_internal(std::size_t nbytes, std::size_t spare = 0);
    void release_internal(std::uint64_t slot_offset);

private:
    struct asymmetric_record {
        std::size_t nbytes = 0;
        std::uint64_t pointer_offset = 0;
        std::map<world_rank, remote_block> remote; ///< the pointer cache
    };

    /// What core files include.
    struct core_part {
        std::size_t bytes_left = 0; ///< that may be added
        std::uint64_t front = 0;    ///< symmetric heap's extent in core files
        std::uint64_t end = 0;      ///< the other heap's extent in core files, from its end
    };

    result<std::uint64_t> allocate_pointer();
    void write_pointer(std::uint64_t pointer, std::uint64_t block, std::size_t nbytes);
    error out_of_memory(const char *kind, std::size_t nbytes, std::uint64_t largest_free) const;
    /// Limits of the front heap, whose space ends where the other heap begins, and of the other.
    [[nodiscard]] std::uint64_t front_limit() const { return size_bytes_ - private_.extent(); }
    [[nodiscard]] std::uint64_t end_limit() const { return size_bytes_ - symmetric_.extent(); }
    std::optional<std::uint64_t> allocate_from(heap &from, std::size_t nbytes,
                                               std::size_t alignment, std::uint64_t limit) const;
    /// Makes the blocks that the heaps now have addressable.
    void unpoison(std::uint64_t offset, std::size_t nbytes);
    void return_pages(const heap::released_block &block) const;
    void extend_core_dump();

    const transport::arena &arena_;
    local_rank local_index_; ///< on its node
    std::byte *base_;
    std::size_t size_bytes_;
    std::atomic<std::uint64_t> symmetric_extent_{0};

    std::function<void(std::uint64_t)> before_release_;

    mutable std::shared_mutex mutex_; ///< leaf lock over everything below
    heap symmetric_;
    heap private_;
    std::unique_ptr<alike_ranges> alike_; ///< of private_; null if slots are not shared
    heap internal_;
    std::unique_ptr<shadow> const shadow_;
    std::map<std::uint64_t, asymmetric_record> asymmetric_; ///< key: offset of this rank's block
    core_part core_;
    std::size_t num_cached_remote_ = 0; ///< cached entries of all `remote` maps
    std::uint64_t next_generation_ = 1;
};

} // namespace diomp::memory
