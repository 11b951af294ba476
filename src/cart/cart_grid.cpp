// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cart/cart_grid.h"

#include "cart/dims.h"

#include <algorithm>
#include <utility>

namespace diomp::cart {
namespace {

/// Row-major: the last dimension varies fastest.
std::size_t position_of(std::span<const int> coords, std::span<const int> dims) {
    std::size_t position = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        position =
            position * static_cast<std::size_t>(dims[i]) + static_cast<std::size_t>(coords[i]);
    }
    return position;
}

std::vector<int> coords_at(std::size_t position, std::span<const int> dims) {
    std::vector<int> coords(dims.size());
    for (std::size_t i = dims.size(); i-- > 0;) {
        coords[i] = static_cast<int>(position % static_cast<std::size_t>(dims[i]));
        position /= static_cast<std::size_t>(dims[i]);
    }
    return coords;
}

/// The members of each node, ascending.
std::vector<std::vector<std::size_t>> members_by_node(node_numbers nodes) {
    std::vector<std::vector<std::size_t>> members;
    for (std::size_t member = 0; member < nodes.size(); ++member) {
        members.resize(std::max<std::size_t>(members.size(), nodes[member] + 1));
        members[nodes[member]].push_back(member);
    }
    std::erase_if(members, [](const auto &each) { return each.empty(); });
    return members;
}

} // namespace

cart_grid::cart_grid(std::vector<int> dims, std::vector<bool> periodic,
                     std::vector<world_rank> members)
    : dims_(std::move(dims)), periodic_(std::move(periodic)), members_(std::move(members)) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
        positions_[members_[i].value()] = i;
    }
}

std::optional<world_rank> cart_grid::rank_at(std::span<const int> coords) const {
    std::vector<int> inside(coords.begin(), coords.end());
    for (std::size_t i = 0; i < dims_.size(); ++i) {
        if (periodic_[i]) {
            inside[i] = (inside[i] % dims_[i] + dims_[i]) % dims_[i];
        }
        if (inside[i] < 0 || inside[i] >= dims_[i]) {
            return std::nullopt;
        }
    }
    return members_[position_of(inside, dims_)];
}

std::optional<std::vector<int>> cart_grid::coords_of(world_rank rank) const {
    auto const found = positions_.find(rank.value());
    if (found == positions_.end()) {
        return std::nullopt;
    }
    return coords_at(found->second, dims_);
}

std::optional<world_rank> cart_grid::shifted(world_rank from, std::size_t dim,
                                             long long displacement) const {
    std::vector<int> coords = *coords_of(from);
    long long const extent = dims_[dim];
    long long moved = coords[dim] + (periodic_[dim] ? displacement % extent : displacement);
    if (periodic_[dim]) {
        moved = (moved + extent) % extent;
    }
    if (moved < 0 || moved >= extent) {
        return std::nullopt;
    }
    coords[dim] = static_cast<int>(moved);
    return members_[position_of(coords, dims_)];
}

std::optional<std::vector<std::size_t>> arrange_by_node(std::span<const int> dims,
                                                        node_numbers nodes) {
    auto const members = members_by_node(nodes);
    std::size_t const node_size = members.front().size();
    if (!std::ranges::all_of(members, [&](const auto &each) { return each.size() == node_size; })) {
        return std::nullopt;
    }
    auto const block = node_block(static_cast<int>(node_size), dims);
    if (!block) {
        return std::nullopt;
    }
    std::vector<int> blocks(dims.size()); // the grid of nodes
    std::ranges::transform(dims, *block, blocks.begin(), std::divides<>());
    std::vector<std::size_t> arranged(nodes.size());
    for (std::size_t position = 0; position < arranged.size(); ++position) {
        std::vector<int> outer = coords_at(position, dims);
        std::vector<int> inner(dims.size());
        for (std::size_t i = 0; i < dims.size(); ++i) {
            inner[i] = outer[i] % (*block)[i];
            outer[i] /= (*block)[i];
        }
        arranged[position] = members[position_of(outer, blocks)][position_of(inner, *block)];
    }
    return arranged;
}

} // namespace diomp::cart
