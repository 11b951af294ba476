// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calling rank's own segment: the symmetric heap grows from the front, asymmetric and local
// data from the end. Nothing here communicates; who allocates symmetrically does so on every rank
// and compares the results (runtime/allocation).
#pragma once

#include "conduit/window.h"
#include "diomp.h"
#include "memory/heap.h"
#include "memory/layout.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>

namespace diomp::memory {

/// An allocation of this rank.
struct allocation {
    ompx_mem_kind_t kind = OMPX_MEM_NONE;
    std::uint64_t offset = 0; ///< from the start of the segment
    std::size_t nbytes = 0;   ///< as asked for
};

/// Another rank's part of an asymmetric allocation, as its second-level pointer told.
struct remote_part {
    std::uint64_t base = 0;
    std::uint64_t nbytes = 0;
    std::uint64_t generation = 0;
};

/// What locating an address inside one's own asymmetric part needs.
struct asymmetric_view {
    std::uint64_t offset = 0; ///< of the own part
    std::size_t nbytes = 0;
    std::uint64_t pointer_offset = 0;  ///< of the second-level pointer, the same on all ranks
    std::optional<remote_part> remote; ///< of the rank asked for, if cached
};

/// Any thread.
class segment {
public:
    /// Copies of second-level pointers that are kept. When there are more, all are dropped.
    static constexpr std::size_t max_remembered = 16384;
    static constexpr std::size_t large_bytes = std::size_t{1} << 20;
    static constexpr std::size_t page_bytes = 4096; ///< the same on all hosts, as offsets are

    /// `core_bytes`: how much of what is allocated core files have.
    segment(const conduit::window &window, world_rank owner, local_rank place,
            std::size_t core_bytes = 0);

    [[nodiscard]] std::byte *base() const { return base_; }
    [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }
    /// Upper end of the symmetric heap. Addresses below it translate by offset. One relaxed load.
    [[nodiscard]] std::uint64_t symmetric_extent() const {
        return symmetric_extent_.load(std::memory_order_relaxed);
    }

    /// Each takes the space or says how much was asked, used and free, and what to set. Blocks from
    /// large_bytes up have pages of their own, of page_bytes.
    result<std::uint64_t> allocate_symmetric(std::size_t nbytes, std::size_t alignment);
    result<std::uint64_t> allocate_local(std::size_t nbytes, std::size_t alignment);
    /// Own part plus second-level pointer; returns the part's offset.
    result<std::uint64_t> allocate_asymmetric(std::size_t nbytes, std::size_t alignment);

    /// The allocation that contains the offset, if any. Exactly at the start: see
    /// allocation::offset.
    [[nodiscard]] std::optional<allocation> find(std::uint64_t offset) const;
    /// Offset of the second-level pointer of the asymmetric allocation that starts there.
    [[nodiscard]] std::optional<std::uint64_t> pointer_of(std::uint64_t offset) const;
    /// Frees what starts at `offset` and gives whole pages back. The caller knows that it is
    /// allowed to.
    void release(std::uint64_t offset);
    /// To be called first by every release() from now on; null: not any more. Not while others
    /// release.
    void before_release(std::function<void(std::uint64_t offset)> call) {
        before_release_ = std::move(call);
    }

    [[nodiscard]] std::optional<asymmetric_view> find_asymmetric(std::uint64_t offset,
                                                                 world_rank peer) const;
    void remember_remote(std::uint64_t offset, world_rank peer, const remote_part &part);

    [[nodiscard]] ompx_segment_info_t info() const;

    /// Space in the runtime's part of the slot; offset from the start of the slot. nullopt: full,
    /// or there would not be a free block of `spare` bytes any more.
    std::optional<std::uint64_t> allocate_internal(std::size_t nbytes, std::size_t spare = 0);
    void release_internal(std::uint64_t slot_offset);

private:
    struct asymmetric_record {
        std::size_t nbytes = 0;
        std::uint64_t pointer_offset = 0;
        std::map<world_rank, remote_part> remote; ///< the pointer cache
    };

    error out_of_memory(const char *kind, std::size_t nbytes, std::uint64_t largest_free) const;
    /// Room for the front heap, whose space ends where the other's begins, and for the other.
    [[nodiscard]] std::uint64_t front_limit() const { return size_bytes_ - private_.extent(); }
    [[nodiscard]] std::uint64_t end_limit() const { return size_bytes_ - symmetric_.extent(); }
    void give_pages_back(const heap::released_block &block) const;
    void extend_core();

    const conduit::window &window_;
    local_rank place_; ///< on its node
    std::byte *base_;
    std::size_t size_bytes_;
    std::atomic<std::uint64_t> symmetric_extent_{0};

    std::function<void(std::uint64_t)> before_release_;

    mutable std::shared_mutex mutex_; ///< leaf lock over everything below
    heap symmetric_;
    heap private_;
    heap internal_;
    std::map<std::uint64_t, asymmetric_record> asymmetric_; ///< by offset of the own part
    std::size_t core_bytes_left_;                           ///< for core files
    std::uint64_t core_front_ = 0;   ///< as far as they have the symmetric heap
    std::uint64_t core_end_ = 0;     ///< and the other one, from its end
    std::size_t num_remembered_ = 0; ///< entries of all `remote`
    std::uint64_t next_generation_ = 1;
};

} // namespace diomp::memory
