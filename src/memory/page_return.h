// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which physical pages a freed block leaves without any user.
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

/// The whole pages that the block touched and that lie in the free range around it. Pages of the
/// neighbouring holes went when those were freed, so a block never returns a page twice: the cost
/// of a free follows the size of its own block. page_bytes is a power of two.
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
