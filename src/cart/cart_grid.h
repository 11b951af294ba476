// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Positions and coordinates in a Cartesian grid of ranks. No communication.
#pragma once

#include "base/ids.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace diomp::cart {

/// [member] its node, as numbers from 0.
using node_numbers = std::span<const std::uint32_t>;

/// Constant after construction; any thread.
class cart_grid {
public:
    /// `members`: world ranks by position, as many as the product of dims.
    cart_grid(std::vector<int> dims, std::vector<bool> periodic, std::vector<world_rank> members);

    [[nodiscard]] std::span<const int> dims() const { return dims_; }
    [[nodiscard]] bool is_periodic(std::size_t dim) const { return periodic_[dim]; }
    [[nodiscard]] std::size_t size() const { return members_.size(); }

    /// The rank at these coordinates; nullopt: outside of the grid.
    [[nodiscard]] std::optional<world_rank> rank_at(std::span<const int> coords) const;
    /// nullopt: not in the grid.
    [[nodiscard]] std::optional<std::vector<int>> coords_of(world_rank rank) const;
    /// The rank `displacement` positions after `from` in a dimension; `from` is in the grid.
    [[nodiscard]] std::optional<world_rank> shifted(world_rank from, std::size_t dim,
                                                    long long displacement) const;

private:
    std::vector<int> dims_;
    std::vector<bool> periodic_;
    std::vector<world_rank> members_; ///< [position]
    std::unordered_map<int, std::size_t> positions_;
};

/// Arranges members so that each node's form a block of the grid: [position] member. nullopt: the
/// nodes have different numbers of members, or these cannot be a block.
std::optional<std::vector<std::size_t>> arrange_by_node(std::span<const int> dims,
                                                        node_numbers nodes);

} // namespace diomp::cart
