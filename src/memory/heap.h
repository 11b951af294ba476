// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Allocator of byte ranges of a segment. It holds no pointers and never accesses the managed
// memory, so that the same sequence of calls gives the same offsets in every process.
//
// Glossary. Offset: bytes from the start of the segment, for both directions. Distance: bytes from
// the heap's own end, its start or its end. Extent: distance of the far end of the outermost block.
// Hole: a free range below the extent. Rest: the space beyond the extent. Granule: 64 bytes; every
// block begins and ends on one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace diomp::memory {

/// Best fit with immediate coalescing. Not thread-safe; the caller locks. A heap costs its owner
/// some 100 bytes of ordinary memory per block and per hole.
class heap {
public:
    /// from_front blocks grow upwards from offset 0, from_end blocks downwards from the capacity.
    enum class direction { from_front, from_end };

    static constexpr std::uint64_t granule_bytes = 64;
    static constexpr std::uint64_t max_alignment = std::uint64_t{1} << 30;

    struct block {
        std::uint64_t offset = 0;
        std::size_t nbytes = 0;   ///< as requested
        std::size_t reserved = 0; ///< whole granules, at least one
    };
    struct hole {
        std::uint64_t offset = 0;
        std::uint64_t nbytes = 0;
        bool operator==(const hole &) const = default;
    };
    struct released_block : block {
        /// Offsets of the free range that now surrounds the block (it includes the block).
        std::uint64_t free_begin = 0;
        std::uint64_t free_end = 0;
    };

    /// Manages [0, capacity_bytes), less an incomplete granule at the end.
    heap(direction grows, std::uint64_t capacity_bytes);

    /// Offset of a new block, or nullopt if there is no space (or the alignment is not a power of
    /// two up to max_alignment). No byte of the block lies further than reach_limit from the heap's
    /// own end: pass the capacity less the extent of the heap at the other end. The *choice* of the
    /// offset never depends on reach_limit: processes whose limits differ get the same offset or
    /// nullopt. Zero bytes take one granule. The offset is aligned; for an aligned address, the
    /// segment's base must be aligned as well. The block's reserved size is a multiple of
    /// unit_bytes, a power of two of at least a granule, and has at least redzone_bytes after the
    /// requested ones. O(log n).
    std::optional<std::uint64_t> allocate(std::size_t nbytes, std::size_t alignment,
                                          std::uint64_t reach_limit,
                                          std::uint64_t unit_bytes = granule_bytes,
                                          std::uint64_t redzone_bytes = 0);

    /// What several heaps allocate at one offset although their blocks differ.
    struct placed_block {
        std::uint64_t distance = 0; ///< no part is nearer to the heap's own end
        std::uint64_t reserved = 0; ///< a multiple of a granule
        std::size_t nbytes = 0;     ///< of this heap's block, at most `reserved`
        std::size_t alignment = granule_bytes;
    };
    /// Allocates a block at an offset that depends on the arguments and the capacity only: the
    /// nearest one to the heap's own end. nullopt if the range is not free or not within
    /// reach_limit. O(log n).
    std::optional<std::uint64_t> allocate_placed(const placed_block &wanted,
                                                 std::uint64_t reach_limit);

    /// Frees the block that begins at `offset`; nullopt if no block begins there. If the block was
    /// the outermost one, the free range includes the rest up to reach_limit. O(log n).
    std::optional<released_block> release(std::uint64_t offset, std::uint64_t reach_limit = 0);

    /// The block whose granules include `offset`. O(log n).
    [[nodiscard]] std::optional<block> find(std::uint64_t offset) const;

    /// Bytes from the heap's own end to the far end of its outermost block; 0 if it is empty.
    [[nodiscard]] std::uint64_t extent() const;
    /// The holes of at least this size. O(log n) plus their number.
    [[nodiscard]] std::vector<hole> holes(std::uint64_t min_bytes) const;
    /// Sum of the reserved sizes.
    [[nodiscard]] std::uint64_t used_bytes() const { return used_bytes_; }
    [[nodiscard]] std::size_t num_blocks() const { return ranges_.size() - holes_.size(); }
    [[nodiscard]] std::uint64_t capacity_bytes() const { return capacity_bytes_; }
    /// An allocation of this size succeeds now (0: none does). With the default alignment it is the
    /// largest such size; with a larger alignment a hole may happen to fit a larger block.
    [[nodiscard]] std::uint64_t largest_free(std::uint64_t reach_limit,
                                             std::size_t alignment = granule_bytes) const;

private:
    // Members use distances, so that both directions share the code; only the two conversions and
    // aligned_begin() depend on the direction.
    struct range {
        std::uint64_t end = 0;
        std::size_t nbytes = 0;
        bool is_hole = false;
    };
    using range_map = std::map<std::uint64_t, range>; // key: begin; no gaps; the last is not a hole

    [[nodiscard]] std::uint64_t aligned_begin(std::uint64_t begin, std::uint64_t size,
                                              std::uint64_t alignment) const;
    [[nodiscard]] std::optional<range_map::iterator> find_hole(std::uint64_t size,
                                                               std::uint64_t alignment);
    std::uint64_t take(std::optional<range_map::iterator> hole, std::uint64_t begin,
                       std::uint64_t size, std::size_t nbytes);
    [[nodiscard]] range_map::const_iterator find_range(std::uint64_t offset) const;
    [[nodiscard]] std::uint64_t offset_of(std::uint64_t begin, std::uint64_t end) const;
    [[nodiscard]] block describe(range_map::const_iterator position) const;
    void add_hole(std::uint64_t begin, std::uint64_t end);
    void remove_hole(range_map::iterator position);

    direction grows_;
    std::uint64_t capacity_bytes_;
    std::uint64_t used_bytes_ = 0;
    range_map ranges_;
    std::set<std::pair<std::uint64_t, std::uint64_t>> holes_; // (size, begin)
};

} // namespace diomp::memory
