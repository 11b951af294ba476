// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of a device's memory that is in the global address space, on its owner: which ranges of
// it are taken and for what. The first half is for ompx_target_alloc: symmetric memory, which all
// ranks allocate together, grows from its front, asymmetric and local memory from its end. The
// second half is for what OpenMP maps and allocates. So neither what a rank has for itself nor
// parts of different sizes move what ranks map alike.
//
// Ranks that map the same things in the same order get the same offsets, since a heap's choices
// depend on its history only. Whether they did is verified when one reaches for the other's memory
// (ledger.h).
#pragma once

#include "base/biased_mutex.h"
#include "base/ids.h"
#include "diomp.h"
#include "memory/heap.h"
#include "offload/identity.h"

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
    bool by_openmp = false;               ///< mapped, or of omp_target_alloc; local
    std::uint64_t offset = 0;             ///< from the start of the segment
    std::size_t nbytes = 0;               ///< as asked for
    const void *host = nullptr;           ///< what is mapped there, or null
    std::uint64_t number = 0;             ///< of an asymmetric one: the same on every rank
};

/// Any thread.
class device_segment {
public:
    /// In memory that is there.
    device_segment(int device, std::byte *base, std::size_t nbytes);
    /// In memory of an accelerator, which is committed as allocations need it.
    device_segment(int device, std::unique_ptr<segment_memory> memory);
    ~device_segment();

    [[nodiscard]] int device() const { return device_; }
    [[nodiscard]] std::byte *base() const { return base_; }
    [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }
    /// Null: the processor loads and stores it.
    [[nodiscard]] segment_memory *memory() const { return memory_.get(); }
    /// Leaves the accelerator's memory to the process, whose device data outlives the runtime.
    void abandon_memory();
    [[nodiscard]] std::optional<std::uint64_t> offset_of(const void *address) const {
        std::uint64_t const offset =
            reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
        return offset < size_bytes_ ? std::optional(offset) : std::nullopt;
    }

    /// Space for `wanted`, whose offset is chosen here. nullopt: no room, in the segment or on the
    /// device. If what is
    /// mapped from there is mapped already, and used (find_and_use), *again becomes true.
    std::optional<std::uint64_t> allocate(const device_allocation &wanted, std::size_t alignment,
                                          bool *again = nullptr);
    /// What contains the offset. One past its end belongs to it, unless something else begins
    /// there.
    [[nodiscard]] std::optional<device_allocation> find(std::uint64_t offset) const;

    /// Who has been told about an allocation, and so has to hear of its end.
    struct told {
        bool mapped_ranks = false; ///< some that read our published state
        std::vector<world_rank> others;
        bool is_used = false; ///< by this rank, see find_and_use

        [[nodiscard]] bool nobody() const { return !mapped_ranks && !is_used && others.empty(); }
    };
    /// find(), and from then on `asker` counts as told. Nothing of what is about to be freed.
    std::optional<device_allocation> tell(std::uint64_t offset, world_rank asker, bool is_mapped);
    /// The same by the number of an asymmetric allocation.
    std::optional<device_allocation> tell_asymmetric(std::uint64_t number, world_rank asker,
                                                     bool is_mapped);
    /// find(), and notes that this rank will keep what it learns about the allocation or its
    /// counterparts. Not of one that is about to be freed.
    std::optional<device_allocation> find_and_use(std::uint64_t offset);
    /// Before release(): from now on nobody is told any more. Returns who was; nullopt: nothing
    /// begins there.
    std::optional<told> retire(std::uint64_t offset);

    /// The block that has become free, empty if nothing begins there.
    std::optional<memory::heap::released_block> release(std::uint64_t offset);
    /// The same at once if nobody knows of the allocation and it is below `limit_bytes`; else
    /// false.
    bool release_unknown(std::uint64_t offset, std::size_t limit_bytes);

    [[nodiscard]] std::size_t num_allocations() const;
    [[nodiscard]] std::uint64_t used_bytes();
    [[nodiscard]] ompx_segment_info_t info();

private:
    device_segment(int device, std::byte *base, std::size_t nbytes, std::size_t stagger);

    struct record {
        device_allocation what;
        std::size_t alignment = 0;
        std::uint64_t before = 0; ///< state_ when it was allocated
        std::uint64_t after = 0;  ///< state_ then
        told known_by;
        bool is_retired = false;
        bool is_resting =
            false; ///< free, but the heap holds it; see the plan in device_segment.cpp
    };
    using record_map = std::unordered_map<std::uint64_t, record>; ///< by offset

    /// What begins there and is not free; else nullptr.
    [[nodiscard]] record *live(std::uint64_t offset);
    [[nodiscard]] const record *live(std::uint64_t offset) const;
    [[nodiscard]] std::optional<device_allocation> look_up(std::uint64_t offset) const;
    std::optional<device_allocation> tell_of(std::optional<device_allocation> what,
                                             world_rank asker, bool is_mapped);
    [[nodiscard]] bool is_mapped_and_used(const device_allocation &wanted) const;
    std::optional<std::uint64_t> wake(const device_allocation &wanted, std::size_t alignment);
    void settle();
    [[nodiscard]] std::optional<memory::heap::block> find_block(std::uint64_t offset) const;
    memory::heap::released_block give_to_heap(std::uint64_t offset);
    void take_out(const record &of);

    int device_;
    std::unique_ptr<segment_memory> memory_;
    std::byte *base_;
    std::size_t size_bytes_;
    mutable biased_mutex mutex_; ///< over everything below; only memory_'s is taken under it
    std::uint64_t half_;         ///< where the first half ends
    std::uint64_t mapped_begin_; ///< where the second one begins
    memory::heap symmetric_;
    memory::heap private_;
    memory::heap mapped_;             ///< its offsets count from mapped_begin_
    std::vector<std::uint64_t> used_; ///< offsets of those that are used
    record_map records_;
    std::unordered_map<std::uint64_t, std::uint64_t> numbers_; ///< of asymmetric ones: their offset
    std::vector<record *> resting_;                            ///< the last one to wake up first
    std::uint64_t state_ = 0;
    std::uint64_t last_state_ = 0;
};

} // namespace diomp::offload
