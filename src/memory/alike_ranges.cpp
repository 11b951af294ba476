// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/internal/alike_ranges.h"

#include "base/assert.h"
#include "base/panic.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace diomp::memory {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

} // namespace

alike_ranges::range alike_ranges::range_of(const heap::block &block) const {
    std::uint64_t const end = heap_.capacity_bytes() - block.offset;
    return {end - block.reserved, end};
}

std::optional<std::uint64_t> alike_ranges::allocate(const request &wanted,
                                                    std::uint64_t reach_limit) {
    if (wanted.max_bytes > heap_.capacity_bytes()) {
        return std::nullopt;
    }
    std::uint64_t const reserved =
        (std::max<std::uint64_t>(wanted.max_bytes, 1) + wanted.unit_bytes - 1) / wanted.unit_bytes *
        wanted.unit_bytes;
    auto offset = allocate_in_free(wanted, reserved);
    if (!offset) {
        offset = heap_.allocate_placed(
            {wanted.extent_bytes, reserved, wanted.nbytes, wanted.alignment}, reach_limit);
    }
    if (offset) {
        range const at = range_of(*heap_.find(*offset));
        live_.emplace(at.begin, at.end);
    }
    return offset;
}

/// The smallest free range that holds the block.
std::optional<std::uint64_t> alike_ranges::allocate_in_free(const request &wanted,
                                                            std::uint64_t reserved) {
    auto best = free_.end();
    for (auto each = free_.begin(); each != free_.end(); ++each) {
        // A block needs up to alignment - granule more: all ranks decide alike without looking.
        std::uint64_t const needed =
            reserved + std::max<std::uint64_t>(wanted.alignment, heap::granule_bytes) -
            heap::granule_bytes;
        bool const fits = each->second - each->first >= needed;
        if (fits &&
            (best == free_.end() || each->second - each->first < best->second - best->first)) {
            best = each;
        }
    }
    if (best == free_.end()) {
        return std::nullopt;
    }
    range const whole{best->first, best->second};
    give_back(best);
    auto const offset =
        heap_.allocate_placed({whole.begin, reserved, wanted.nbytes, wanted.alignment}, no_limit);
    if (!offset) {
        panic("a range that was reserved is not free");
    }
    range const taken = range_of(*heap_.find(*offset));
    DIOMP_ASSERT(whole.begin <= taken.begin && taken.end <= whole.end,
                 "the block lies in the free range");
    reserve({whole.begin, taken.begin});
    reserve({taken.end, whole.end});
    return offset;
}

void alike_ranges::reserve(range free) {
    if (free.begin == free.end) {
        return;
    }
    auto const kept = heap_.allocate_placed({free.begin, free.end - free.begin, 0}, no_limit);
    if (!kept || *kept != offset_of(free)) {
        panic("a range that was given back is not free");
    }
    free_.emplace(free.begin, free.end);
    free_bytes_ += free.end - free.begin;
}

heap::released_block
alike_ranges::give_back(std::map<std::uint64_t, std::uint64_t>::iterator free) {
    auto const released = heap_.release(offset_of({free->first, free->second}));
    if (!released) {
        panic("a reserved range is unknown to the heap");
    }
    free_bytes_ -= free->second - free->first;
    free_.erase(free);
    return *released;
}

bool alike_ranges::release(std::uint64_t offset, std::uint64_t reach_limit,
                           const std::function<void(const heap::released_block &)> &each_freed) {
    auto const block = heap_.find(offset);
    auto const found = block ? live_.find(range_of(*block).begin) : live_.end();
    if (found == live_.end() || block->offset != offset) {
        return false;
    }
    range freed{found->first, found->second};
    live_.erase(found);
    auto next = free_.upper_bound(freed.begin);
    if (next != free_.end() && next->first == freed.end) {
        freed.end = next->second;
        give_back(next);
    }
    auto const after = free_.lower_bound(freed.begin);
    if (after != free_.begin() && std::prev(after)->second == freed.begin) {
        freed.begin = std::prev(after)->first;
        give_back(std::prev(after));
    }
    each_freed(*heap_.release(offset, reach_limit));
    std::uint64_t const last_live = live_.empty() ? 0 : std::prev(live_.end())->second;
    if (freed.begin < last_live) {
        reserve(freed);
        return true;
    }
    while (!free_.empty() && std::prev(free_.end())->first >= last_live) {
        give_back(std::prev(free_.end()));
    }
    return true;
}

bool alike_ranges::is_free(std::uint64_t offset) const {
    auto const block = heap_.find(offset);
    return block && block->offset == offset && free_.contains(range_of(*block).begin);
}

} // namespace diomp::memory
