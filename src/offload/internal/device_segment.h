// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of a device's memory in the global address space, as its owner manages it: which ranges
// are allocated and for what. The first half is for ompx_target_alloc: symmetric memory, which all
// ranks allocate together, grows from its front, asymmetric and local memory from its end. The
// second half is for memory that OpenMP maps and allocates. Allocations of one rank alone, and of
// different sizes, therefore do not shift what all ranks map alike.
//
// Ranks that map the same things in the same order get equal offsets, since a heap's choices depend
// only on its history. The first transfer to another rank's memory verifies this
// (alloc_directory.h).
#pragma once

#include "base/biased_mutex.h"
#include "base/ids.h"
#include "diomp.h"
#include "memory/heap.h"
#include "offload/internal/identity.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace diomp::offload {

class segment_memory;

struct device_allocation {
    ompx_mem_kind_t kind = OMPX_MEM_NONE; ///< symmetric, asymmetric or local
    bool by_openmp = false;               ///< mapped, or by omp_target_alloc; local
    std::uint64_t offset = 0;             ///< from the start of the segment
    std::size_t nbytes = 0;               ///< as requested
    const void *host = nullptr;           ///< the host data mapped to it, or null
    std::uint64_t number = 0; ///< identifies an asymmetric allocation; equal on all ranks
};

/// Thread-safe.
class device_segment {
public:
    /// Manages existing memory.
    device_segment(int device, std::byte *base, std::size_t nbytes);
    /// Manages accelerator memory, which is committed as allocations need it.
    device_segment(int device, std::unique_ptr<segment_memory> memory);
    ~device_segment();

    [[nodiscard]] int device() const { return device_; }
    [[nodiscard]] std::byte *base() const { return base_; }
    [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }
    /// Null: the processor loads and stores the segment.
    [[nodiscard]] segment_memory *memory() const { return memory_.get(); }
    /// Leaks the accelerator's memory, because the program's device data outlives the runtime.
    void abandon_memory();
    [[nodiscard]] std::optional<std::uint64_t> offset_of(const void *address) const {
        std::uint64_t const offset =
            reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
        return offset < size_bytes_ ? std::optional(offset) : std::nullopt;
    }

    /// Allocates; chooses the offset of `request`. nullopt: no space in the segment or on the
    /// device. Sets *is_mapped_again if the same host data is already mapped and that mapping is in
    /// use (find_and_use).
    std::optional<std::uint64_t> allocate(const device_allocation &request, std::size_t alignment,
                                          bool *is_mapped_again = nullptr);
    /// Finds the allocation that contains the offset, or that ends there if no other begins there.
    [[nodiscard]] std::optional<device_allocation> find(std::uint64_t offset) const;

    /// Ranks that have cached an allocation and must be notified before it is freed.
    struct sharer_set {
        bool mapped_ranks = false; ///< ranks that read this rank's published state
        std::vector<world_rank> others;
        bool is_used = false; ///< used by this rank, see find_and_use

        [[nodiscard]] bool empty() const { return !mapped_ranks && !is_used && others.empty(); }
    };
    /// find(), and adds `requester` to the sharers. nullopt for an allocation that is being
    /// released.
    std::optional<device_allocation> find_and_share(std::uint64_t offset, world_rank requester,
                                                    bool is_mapped);
    /// Like find_and_share, by the number of an asymmetric allocation.
    std::optional<device_allocation>
    find_and_share_asymmetric(std::uint64_t number, world_rank requester, bool is_mapped);
    /// find(), and records that this rank caches the allocation or its counterparts. nullopt for an
    /// allocation that is being released.
    std::optional<device_allocation> find_and_use(std::uint64_t offset);
    /// Call before release(): no rank becomes a sharer from now on. Returns the sharers; nullopt:
    /// no allocation begins there.
    std::optional<sharer_set> begin_release(std::uint64_t offset);

    /// Frees an allocation and returns its block; nullopt: no allocation begins there.
    std::optional<memory::heap::released_block> release(std::uint64_t offset);
    /// Frees an allocation without sharers that is smaller than `limit_bytes`; otherwise returns
    /// false.
    bool release_unshared(std::uint64_t offset, std::size_t limit_bytes);

    [[nodiscard]] std::size_t num_allocations() const;
    [[nodiscard]] std::uint64_t used_bytes();
    [[nodiscard]] ompx_segment_info_t info();

private:
    device_segment(int device, std::byte *base, std::size_t nbytes, std::size_t stagger);

    struct allocation_record {
        device_allocation what;
        std::size_t alignment = 0;
        std::uint64_t before = 0; ///< state_ before the allocation
        std::uint64_t after = 0;  ///< state_ after it
        sharer_set sharers;
        bool is_releasing = false;
        bool is_cached = false; ///< free, but still allocated in the heap; see device_segment.cpp
    };
    using record_map = std::unordered_map<std::uint64_t, allocation_record>; ///< key: offset

    /// The allocation that begins there; nullptr if none.
    [[nodiscard]] allocation_record *find_live(std::uint64_t offset);
    [[nodiscard]] const allocation_record *find_live(std::uint64_t offset) const;
    [[nodiscard]] std::optional<device_allocation> find_locked(std::uint64_t offset) const;
    std::optional<device_allocation> record_sharer(std::optional<device_allocation> what,
                                                   world_rank requester, bool is_mapped);
    [[nodiscard]] bool is_mapped_and_used(const device_allocation &request) const;
    std::optional<std::uint64_t> reuse_cached(const device_allocation &request,
                                              std::size_t alignment);
    void flush_cached();
    [[nodiscard]] std::optional<memory::heap::block> find_block(std::uint64_t offset) const;
    memory::heap::released_block release_to_heap(std::uint64_t offset);
    void erase_record(const allocation_record &of);

    int device_;
    std::unique_ptr<segment_memory> memory_;
    std::byte *base_;
    std::size_t size_bytes_;
    mutable biased_mutex
        mutex_;          ///< guards the members below; only memory_'s lock is taken under it
    std::uint64_t half_; ///< end of the first half
    std::uint64_t mapped_begin_; ///< begin of the second half
    memory::heap symmetric_;
    memory::heap private_;
    memory::heap mapped_;             ///< offsets relative to mapped_begin_
    std::vector<std::uint64_t> used_; ///< offsets of allocations in use by this rank
    record_map records_;
    std::unordered_map<std::uint64_t, std::uint64_t>
        numbers_;                             ///< offsets of asymmetric allocations
    std::vector<allocation_record *> cached_; ///< reused from the back
    std::uint64_t state_ = 0;
    std::uint64_t last_state_ = 0;
};

} // namespace diomp::offload
