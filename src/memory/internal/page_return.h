// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The physical pages that become unused when a block is freed.
#pragma once

#include "memory/heap.h"

#include <algorithm>
#include <cstdint>

namespace diomp::memory {

/// Offsets, page-aligned; empty if begin == end.
struct page_range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    [[nodiscard]] bool empty() const { return begin == end; }
    bool operator==(const page_range &) const = default;
};

/// The whole pages that the block overlaps and that lie in the free range around it. Other pages of
/// neighbouring holes were returned when those were freed, so no page is returned twice, and the
/// cost of a free depends only on the size of its block. page_bytes is a power of two.
[[nodiscard]] inline page_range pages_to_release(const heap::released_block &released,
                                                 std::uint64_t page_bytes) {
    const auto down = [page_bytes](std::uint64_t value) { return value & ~(page_bytes - 1); };
    const auto up = [&](std::uint64_t value) { return down(value + page_bytes - 1); };
    const std::uint64_t begin = std::max(down(released.offset), up(released.free_begin));
    const std::uint64_t end =
        std::min(up(released.offset + released.reserved), down(released.free_end));
    return begin < end ? page_range{.begin = begin, .end = end} : page_range{};
}

} // namespace diomp::memory
