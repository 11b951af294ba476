// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/node_layout.h"

#include "base/assert.h"

#include <algorithm>
#include <unordered_map>

namespace diomp::group {
namespace {

/// Whether the members are the first ranks of the world, in order.
bool are_first_ranks(std::span<const world_rank> members) {
    for (std::size_t member = 0; member < members.size(); ++member) {
        if (members[member].index() != member) {
            return false;
        }
    }
    return true;
}

} // namespace

std::vector<std::uint32_t> node_layout::members_of(std::size_t node) const {
    std::vector<std::uint32_t> found;
    found.reserve(sizes[node]);
    for (std::uint32_t member = leaders[node]; found.size() < sizes[node]; ++member) {
        if (this->node(member) == node) {
            found.push_back(member);
        }
    }
    return found;
}

std::vector<std::uint32_t> node_layout::members_with_index(std::size_t local_index) const {
    std::vector<std::uint32_t> found = leaders;
    if (contiguous) {
        for (std::uint32_t &member : found) {
            member += static_cast<std::uint32_t>(local_index);
        }
        return found;
    }
    std::vector<std::uint32_t> seen(num_nodes());
    for (std::uint32_t member = 0; member < nodes_.size(); ++member) {
        std::size_t const on = node(member);
        if (seen[on]++ == local_index) {
            found[on] = member;
        }
    }
    return found;
}

node_layout make_node_layout(std::span<const world_rank> members, std::size_t self,
                             const node_map &nodes) {
    node_layout made;
    made.members = members;
    bool const has_table = !nodes.table().empty() && are_first_ranks(members);
    std::unordered_map<std::int32_t, std::int32_t> number_of;
    made.own_nodes_.reserve(has_table ? 0 : members.size());
    for (std::uint32_t member = 0; member < members.size(); ++member) {
        std::int32_t const world_node = nodes[members[member]];
        auto const next = static_cast<std::int32_t>(made.leaders.size());
        std::int32_t const node =
            has_table ? world_node : number_of.try_emplace(world_node, next).first->second;
        DIOMP_ASSERT(node <= next, "nodes are numbered in the order of their lowest ranks");
        if (node == next) {
            made.leaders.push_back(member);
            made.sizes.push_back(0);
        }
        auto const index = static_cast<std::size_t>(node);
        made.contiguous &= made.leaders[index] + made.sizes[index] == member;
        ++made.sizes[index];
        if (!has_table) {
            made.own_nodes_.push_back(node);
        }
    }
    made.nodes_ = has_table ? nodes.table().first(members.size())
                            : std::span<const std::int32_t>(made.own_nodes_);
    made.own_node = static_cast<std::uint32_t>(made.nodes_[self]);
    made.local_members = made.members_of(made.own_node);
    made.own_local_index = static_cast<std::uint32_t>(std::ranges::find(made.local_members, self) -
                                                      made.local_members.begin());
    DIOMP_ASSERT(made.own_local_index < made.local_members.size(), "the caller is on its own node");
    DIOMP_ASSERT(made.sizes[made.own_node] == made.local_members.size(),
                 "each node's members are counted");
    if (made.num_nodes() == 1) {
        made.nodes_ = {};
        made.own_nodes_.clear();
        made.own_nodes_.shrink_to_fit();
    }
    return made;
}

} // namespace diomp::group
