// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Identifier types that do not convert into each other: a rank of the world is not a rank of a
// group.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace diomp {

template <typename Tag>
class id {
public:
    constexpr id() = default;
    constexpr explicit id(int value) : value_(value) {}
    [[nodiscard]] constexpr int value() const { return value_; }
    [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
    constexpr auto operator<=>(const id &) const = default;

private:
    int value_ = -1;
};

/// Rank in the world, 0 .. size - 1.
using world_rank = id<struct world_rank_tag>;
/// Rank among the ranks of one node.
using local_rank = id<struct local_rank_tag>;
/// Position in a group.
using group_rank = id<struct group_rank_tag>;

/// Bytes from the start of a rank's segment.
enum class segment_offset : std::uint64_t {};
[[nodiscard]] constexpr std::uint64_t raw(segment_offset offset) {
    return static_cast<std::uint64_t>(offset);
}

} // namespace diomp
