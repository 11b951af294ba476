// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of a device's memory in the global address space, as its owner manages it.
//
// Ranks that map the same things in the same order get equal keys (allocation_table.h), since a
// heap's choices depend only on its history, on devices of any kinds and with segments of any
// sizes. The first transfer to another rank's memory verifies this (alloc_directory.h).
#pragma once

#include "base/biased_mutex.h"
#include "base/result.h"
#include "offload/internal/allocation_table.h"
#include "offload/internal/segment_heaps.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace diomp::offload {

class remote_memory;
class segment_memory;

/// Index among the remote devices of a rank.
enum class remote_device_index : int {};

/// Thread-safe.
class device_segment {
public:
    /// Manages existing memory.
    device_segment(int device, std::byte *base, std::size_t nbytes);
    /// Manages memory of a remote device of this rank; `remote_index`: among those.
    device_segment(int device, std::byte *base, std::size_t nbytes, remote_device_index on);
    /// Manages accelerator memory, which is committed as allocations need it.
    device_segment(int device, std::unique_ptr<segment_memory> memory);
    ~device_segment();

    [[nodiscard]] int device() const { return device_; }
    [[nodiscard]] std::byte *base() const { return base_; }
    [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }
    /// nullopt: the device is one of this host.
    [[nodiscard]] std::optional<int> remote_index() const { return remote_index_; }
    /// Null: the processor loads and stores the segment, or the device is a remote one.
    [[nodiscard]] segment_memory *memory() const { return memory_.get(); }
    /// Prepares words of the runtime (diomp_endpoint::barrier_words) that calls in regions use;
    /// blocks until the device has them. On memory() only.
    status set_up_barrier_words();
    /// Their address on the device; 0: there are none.
    [[nodiscard]] std::uint64_t barrier_words() const { return barrier_words_; }
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

    /// What names the counterparts of an own allocation on all ranks.
    [[nodiscard]] allocation_key key_of(const device_allocation &own) const;
    /// find() at `inside` bytes after what the key names, and adds `requester` to the sharers.
    /// nullopt for an allocation that is being released.
    std::optional<device_allocation> find_and_share(const allocation_key &key, std::size_t inside,
                                                    world_rank requester, bool is_mapped);
    /// find(), and records that this rank caches the allocation or its counterparts. nullopt for an
    /// allocation that is being released.
    std::optional<device_allocation> find_and_use(std::uint64_t offset);
    /// Call before release(): no rank becomes a sharer from now on. Returns the sharers; nullopt:
    /// no allocation begins there.
    std::optional<sharer_set> begin_release(std::uint64_t offset);

    /// Frees an allocation; false: none begins there.
    bool release(std::uint64_t offset);
    /// Frees an allocation without sharers that is smaller than `limit_bytes`; otherwise returns
    /// false.
    bool release_unshared(std::uint64_t offset, std::size_t limit_bytes);

    /// The parts that hold memory with counterparts in other ranks' segments: [0, symmetric_end) at
    /// equal offsets, [mapped_begin, size_bytes()) at equal distances from mapped().end. They never
    /// shrink, except before memory that has no counterpart.
    struct common_parts {
        std::uint64_t symmetric_end = 0;
        std::uint64_t mapped_begin = 0;
    };
    [[nodiscard]] common_parts common() const;
    /// Where OpenMP's memory can be, a part of the second half.
    struct mapped_part {
        std::uint64_t begin = 0;
        std::uint64_t end = 0; ///< what is mapped alike has equal distances from it on all ranks
    };
    [[nodiscard]] mapped_part mapped() const {
        return {heaps_.mapped_end() - heaps_.mapped_bytes(), heaps_.mapped_end()};
    }

    /// Excludes the runtime's own.
    [[nodiscard]] std::size_t num_allocations() const;
    [[nodiscard]] std::uint64_t used_bytes();
    /// largest_free: of what OpenMP maps, or of what ompx_target_alloc returns.
    [[nodiscard]] ompx_segment_info_t info(bool by_openmp = false);

private:
    device_segment(int device, std::byte *base, std::size_t nbytes, std::size_t stagger);

    [[nodiscard]] std::optional<std::uint64_t> offset_at(const allocation_key &key) const;
    void flush_cached();
    /// The beginning of the allocation that contains the offset, or that ends there if no other
    /// begins there; not of the runtime's own, which has no end that a program could mean.
    [[nodiscard]] std::optional<std::uint64_t> begin_of(std::uint64_t offset) const;

    int device_;
    std::optional<int> remote_index_;
    std::unique_ptr<segment_memory> memory_;
    std::byte *base_;
    std::size_t size_bytes_;
    mutable biased_mutex
        mutex_; ///< guards the members below; only memory_'s lock is taken under it
    segment_heaps heaps_;
    mutable common_parts common_;
    allocation_table allocations_;
    std::uint64_t barrier_words_ = 0; ///< set before the segment is known to other threads
    std::size_t num_own_ = 0;         ///< allocations of the runtime
};

/// The index of an own GPU of a service among the remote devices of this rank, if its session makes
/// calls on this segment; otherwise nullopt. `remote` may be null.
[[nodiscard]] std::optional<int> session_index_of(const device_segment &segment,
                                                  remote_memory *remote);

} // namespace diomp::offload
