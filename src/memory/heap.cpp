// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Algorithm. `ranges_` tiles [0, extent) with blocks and holes in order of distance. Two holes are
// never adjacent and the last range is a block, so the tiling is a function of the set of blocks
// only. `holes_` orders the holes by size. A request takes the smallest hole that it fits in, at
// the position nearest to the heap's own end; the space left before it (alignment) and after it
// becomes holes. If it fits in none, it takes the beginning of the rest. Since the tiling is
// canonical, a block that is allocated and released again leaves the heap unchanged. Callers rely
// on that to undo an allocation that failed on another rank.
#include "memory/heap.h"

#include "base/assert.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

namespace diomp::memory {

namespace {

constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t power_of_two) {
    return value & ~(power_of_two - 1);
}

/// Requires that value + power_of_two does not overflow.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t power_of_two) {
    return round_down(value + power_of_two - 1, power_of_two);
}

/// Limit of holes of nearly the right size that are tried one by one for an alignment above the
/// granule. After them only holes are considered that are large enough at any alignment, which
/// keeps the search O(log n).
constexpr int max_tight_holes = 64;

} // namespace

heap::heap(direction grows, std::uint64_t capacity_bytes)
    : grows_(grows),
      // The upper bound keeps every sum of a distance, a size and an alignment within 64 bits.
      capacity_bytes_(round_down(
          std::min(capacity_bytes, std::numeric_limits<std::uint64_t>::max() / 4), granule_bytes)) {
}

std::uint64_t heap::extent() const {
    return ranges_.empty() ? 0 : std::prev(ranges_.end())->second.end;
}

std::uint64_t heap::offset_of(std::uint64_t begin, std::uint64_t end) const {
    return grows_ == direction::from_front ? begin : capacity_bytes_ - end;
}

/// Least distance, not below `begin`, at which a block of this size has an aligned offset; beyond
/// the capacity if there is none.
std::uint64_t heap::aligned_begin(std::uint64_t begin, std::uint64_t size,
                                  std::uint64_t alignment) const {
    if (grows_ == direction::from_front) {
        return round_up(begin, alignment);
    }
    if (begin + size > capacity_bytes_) {
        return capacity_bytes_;
    }
    return capacity_bytes_ - round_down(capacity_bytes_ - begin - size, alignment) - size;
}

std::optional<heap::range_map::iterator> heap::find_hole(std::uint64_t size,
                                                         std::uint64_t alignment) {
    const std::uint64_t sufficient = size + alignment - granule_bytes;
    auto candidate = holes_.lower_bound({size, 0});
    for (int i = 0; i < max_tight_holes && candidate != holes_.end(); ++i, ++candidate) {
        const auto [hole_size, begin] = *candidate;
        if (aligned_begin(begin, size, alignment) + size <= begin + hole_size) {
            return ranges_.find(begin);
        }
    }
    if (candidate != holes_.end() && candidate->first < sufficient) {
        candidate = holes_.lower_bound({sufficient, 0});
    }
    if (candidate == holes_.end()) {
        return std::nullopt;
    }
    return ranges_.find(candidate->second);
}

void heap::add_hole(std::uint64_t begin, std::uint64_t end) {
    DIOMP_ASSERT(begin <= end, "a hole has no negative size");
    if (begin < end) {
        ranges_.insert_or_assign(begin, range{.end = end, .nbytes = 0, .is_hole = true});
        [[maybe_unused]] bool const is_new = holes_.emplace(end - begin, begin).second;
        DIOMP_ASSERT(is_new, "a hole is listed once");
    }
}

void heap::remove_hole(range_map::iterator position) {
    [[maybe_unused]] std::size_t const num_erased =
        holes_.erase({position->second.end - position->first, position->first});
    DIOMP_ASSERT(position->second.is_hole && num_erased == 1, "every hole is listed by its size");
    ranges_.erase(position);
}

std::optional<std::uint64_t> heap::allocate(std::size_t nbytes, std::size_t alignment,
                                            std::uint64_t reach_limit, std::uint64_t unit_bytes,
                                            std::uint64_t redzone_bytes) {
    if (!std::has_single_bit(alignment) || alignment > max_alignment || nbytes > capacity_bytes_) {
        return std::nullopt;
    }
    const std::uint64_t aligned_to = std::max<std::uint64_t>(alignment, granule_bytes);
    const std::uint64_t size =
        round_up(std::max<std::uint64_t>(nbytes, 1) + redzone_bytes, unit_bytes);
    const auto hole = find_hole(size, aligned_to);
    const std::uint64_t free_begin = hole ? (*hole)->first : extent();
    const std::uint64_t begin = aligned_begin(free_begin, size, aligned_to);
    const std::uint64_t end = begin + size;
    if (end > std::min(reach_limit, capacity_bytes_)) {
        return std::nullopt;
    }
    DIOMP_ASSERT(offset_of(begin, end) % aligned_to == 0, "a block has the requested alignment");
    return take(hole, begin, size, nbytes);
}

/// Makes a block of a hole, or of the rest.
std::uint64_t heap::take(std::optional<range_map::iterator> hole, std::uint64_t begin,
                         std::uint64_t size, std::size_t nbytes) {
    const std::uint64_t end = begin + size;
    const std::uint64_t free_begin = hole ? (*hole)->first : extent();
    const std::uint64_t free_end = hole ? (*hole)->second.end : end;
    DIOMP_ASSERT(free_begin <= begin && end <= free_end,
                 "a block lies in the free range chosen for it");
    if (hole) {
        remove_hole(*hole);
    }
    add_hole(free_begin, begin);
    ranges_.insert_or_assign(begin, range{.end = end, .nbytes = nbytes, .is_hole = false});
    add_hole(end, free_end);
    used_bytes_ += size;
    DIOMP_ASSERT(used_bytes_ <= extent(), "blocks do not overlap");
    return offset_of(begin, end);
}

std::optional<std::uint64_t> heap::allocate_placed(const placed_block &wanted,
                                                   std::uint64_t reach_limit) {
    const std::uint64_t limit = std::min(reach_limit, capacity_bytes_);
    if (!std::has_single_bit(wanted.alignment) || wanted.alignment > max_alignment ||
        wanted.distance > limit || wanted.reserved > limit - wanted.distance) {
        return std::nullopt;
    }
    const std::uint64_t begin = aligned_begin(
        wanted.distance, wanted.reserved, std::max<std::uint64_t>(wanted.alignment, granule_bytes));
    const std::uint64_t end = begin + wanted.reserved;
    if (end > limit) {
        return std::nullopt;
    }
    if (begin >= extent()) {
        return take(std::nullopt, begin, wanted.reserved, wanted.nbytes);
    }
    const auto around = std::prev(ranges_.upper_bound(begin));
    return around->second.is_hole && around->second.end >= end
               ? std::optional(take(around, begin, wanted.reserved, wanted.nbytes))
               : std::nullopt;
}

std::vector<heap::hole> heap::holes(std::uint64_t min_bytes) const {
    std::vector<hole> found;
    for (auto each = holes_.lower_bound({min_bytes, 0}); each != holes_.end(); ++each) {
        found.push_back({offset_of(each->second, each->second + each->first), each->first});
    }
    return found;
}

std::optional<heap::released_block> heap::release(std::uint64_t offset, std::uint64_t reach_limit) {
    const auto found = find_range(offset);
    if (found == ranges_.end() || found->second.is_hole ||
        offset_of(found->first, found->second.end) != offset) {
        return std::nullopt;
    }
    released_block released{describe(found)};
    DIOMP_ASSERT(used_bytes_ >= released.reserved, "the sum counts every block");
    used_bytes_ -= released.reserved;

    std::uint64_t begin = found->first;
    std::uint64_t end = found->second.end;
    auto next = ranges_.erase(found);
    if (next != ranges_.begin() && std::prev(next)->second.is_hole) {
        const auto previous = std::prev(next);
        begin = previous->first;
        remove_hole(previous);
    }
    if (next == ranges_.end()) {
        end = std::max(end, std::min(reach_limit, capacity_bytes_));
    } else {
        if (next->second.is_hole) {
            end = next->second.end;
            remove_hole(next);
        }
        add_hole(begin, end);
    }
    DIOMP_ASSERT(ranges_.empty() || !std::prev(ranges_.end())->second.is_hole,
                 "the outermost range is a block");
    released.free_begin = offset_of(begin, end);
    released.free_end = released.free_begin + (end - begin);
    return released;
}

heap::range_map::const_iterator heap::find_range(std::uint64_t offset) const {
    if (offset >= capacity_bytes_) {
        return ranges_.end();
    }
    const std::uint64_t distance =
        grows_ == direction::from_front ? offset : capacity_bytes_ - offset - 1;
    if (distance >= extent()) {
        return ranges_.end();
    }
    return std::prev(ranges_.upper_bound(distance));
}

heap::block heap::describe(range_map::const_iterator position) const {
    const auto &[begin, what] = *position;
    return {
        .offset = offset_of(begin, what.end), .nbytes = what.nbytes, .reserved = what.end - begin};
}

std::optional<heap::block> heap::find(std::uint64_t offset) const {
    const auto found = find_range(offset);
    if (found == ranges_.end() || found->second.is_hole) {
        return std::nullopt;
    }
    return describe(found);
}

std::uint64_t heap::largest_free(std::uint64_t reach_limit, std::size_t alignment) const {
    if (!std::has_single_bit(alignment) || alignment > max_alignment) {
        return 0;
    }
    const std::uint64_t aligned_to = std::max<std::uint64_t>(alignment, granule_bytes);
    const std::uint64_t slack = aligned_to - granule_bytes;
    const std::uint64_t hole = holes_.empty() ? 0 : holes_.rbegin()->first;
    const std::uint64_t in_hole = hole > slack ? hole - slack : 0;

    // In the rest the block begins (from the front) or ends (from the end) at a known offset.
    const std::uint64_t limit = round_down(std::min(reach_limit, capacity_bytes_), granule_bytes);
    const std::uint64_t first =
        grows_ == direction::from_front ? round_up(extent(), aligned_to) : extent();
    const std::uint64_t last =
        grows_ == direction::from_front || limit <= first
            ? limit
            : capacity_bytes_ -
                  std::min(capacity_bytes_, round_up(capacity_bytes_ - limit, aligned_to));
    return std::max(in_hole, last > first ? last - first : 0);
}

} // namespace diomp::memory
