// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The allocations of a device segment: what each one is for, and which ranks share it.
//
// The table also caches freed blocks. A target region maps, runs and unmaps, and the next one does
// the same, so the same blocks are allocated and freed in stack order. The heap's choices depend
// only on its state: if a block is freed when the heap is in the state right after the block's
// allocation, freeing restores the state before it, and an equal request would get the same offset
// again. Such a block is *cached*: it counts as free, but the heap still holds it. If the next
// request is equal, the block is reused; before any other change of the heap, cached blocks are
// released to it. The cache therefore never changes an offset.
//
// `state_` numbers the states: each allocation creates a new one and remembers the previous one.
#pragma once

#include "base/ids.h"
#include "diomp/types.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace diomp::offload {

/// How a rank names an allocation of another one. The first three name counterparts: memory that
/// all ranks have allocated alike.
enum class key_kind : std::uint32_t {
    offset,   ///< offset in the device's segment
    from_end, ///< of memory for OpenMP: distance from the end of all such memory
    number,   ///< number of an asymmetric allocation
    address,  ///< as the owner sees it
};

struct allocation_key {
    key_kind kind = key_kind::offset;
    std::uint64_t value = 0;

    friend bool operator==(const allocation_key &, const allocation_key &) = default;
    friend auto operator<=>(const allocation_key &, const allocation_key &) = default;
};

struct device_allocation {
    ompx_mem_kind_t kind = OMPX_MEM_NONE; ///< symmetric, asymmetric or local
    bool by_openmp = false;               ///< mapped, or by omp_target_alloc; local
    std::uint64_t offset = 0;             ///< from the start of the segment
    std::size_t nbytes = 0;               ///< as requested
    const void *host = nullptr;           ///< the host data mapped to it, or null
    std::uint64_t number = 0; ///< identifies an asymmetric allocation; equal on all ranks
};

/// Ranks that have cached an allocation and must be notified before it is freed.
struct sharer_set {
    bool mapped_ranks = false; ///< ranks that read this rank's published state
    std::vector<world_rank> others;
    bool is_used = false; ///< used by this rank, see allocation_table::use

    [[nodiscard]] bool empty() const { return !mapped_ranks && !is_used && others.empty(); }
};

/// Not thread-safe. Functions that take an offset find the allocation that begins there.
class allocation_table {
public:
    struct allocation_record {
        device_allocation what;
        std::size_t alignment = 0;
        std::uint64_t before = 0; ///< state_ before the allocation
        std::uint64_t after = 0;  ///< state_ after it
        sharer_set sharers;
        bool is_releasing = false;
        bool is_cached = false; ///< free, but still allocated in the heap
    };

    /// nullptr: none begins there.
    [[nodiscard]] const allocation_record *find(std::uint64_t offset) const {
        auto const found = records_.find(offset);
        return found == records_.end() || found->second.is_cached ? nullptr : &found->second;
    }
    [[nodiscard]] allocation_record *find(std::uint64_t offset) {
        return const_cast<allocation_record *>(std::as_const(*this).find(offset));
    }
    [[nodiscard]] std::size_t count() const { return records_.size() - cached_.size(); }
    /// The offset of an asymmetric allocation.
    [[nodiscard]] std::optional<std::uint64_t> offset_of_number(std::uint64_t number) const;
    /// Whether host data of the request is mapped already and that mapping is in use.
    [[nodiscard]] bool is_mapped_and_used(const device_allocation &request) const;

    /// Adds a block of the heap that has just been allocated.
    void add(const device_allocation &made, std::size_t alignment);
    /// Adds a rank to the sharers. nullopt for an allocation that is being released.
    std::optional<device_allocation> share(std::uint64_t offset, world_rank requester,
                                           bool is_mapped);
    /// Records that this rank caches the allocation or its counterparts. nullopt for an allocation
    /// that is being released.
    std::optional<device_allocation> use(std::uint64_t offset);
    /// No rank becomes a sharer from now on. Returns the sharers.
    std::optional<sharer_set> begin_release(std::uint64_t offset);
    /// Removes an allocation whose block is released to the heap next.
    void erase(const allocation_record &of);

    /// Reuses a cached block.
    std::optional<std::uint64_t> reuse(const device_allocation &request, std::size_t alignment) {
        if (cached_.empty() || !request.by_openmp) {
            return std::nullopt;
        }
        allocation_record &candidate = *cached_.back();
        if (candidate.before != state_ || candidate.what.nbytes != request.nbytes ||
            candidate.alignment != alignment) {
            return std::nullopt;
        }
        candidate.what.host = request.host;
        candidate.is_cached = false;
        state_ = candidate.after;
        cached_.pop_back();
        return candidate.what.offset;
    }
    /// Caches the block of an allocation without sharers. False: the next request would not get it.
    bool cache_freed(allocation_record &freed) {
        if (freed.after != state_) {
            return false;
        }
        state_ = freed.before;
        freed.is_cached = true;
        cached_.push_back(&freed);
        return true;
    }
    /// Removes the block that was cached last; the caller releases it to the heap.
    std::optional<std::uint64_t> pop_cached();

private:
    std::unordered_map<std::uint64_t, allocation_record> records_; ///< key: offset
    std::unordered_map<std::uint64_t, std::uint64_t>
        numbers_;                             ///< offsets of asymmetric allocations
    std::vector<std::uint64_t> used_;         ///< offsets of allocations in use by this rank
    std::vector<allocation_record *> cached_; ///< reused from the back
    std::uint64_t state_ = 0;
    std::uint64_t last_state_ = 0;
};

} // namespace diomp::offload
