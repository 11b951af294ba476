// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The nodes of the world's ranks and of a group's members.
//
// node: a set of ranks that load and store each other's slots; one machine may hold several nodes.
// leader: the member of a node with the lowest group rank; it communicates with the other nodes.
#pragma once

#include "base/ids.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace diomp::group {

/// The node number of every rank of the world, equal on all ranks. Owns no table.
class node_map {
public:
    /// All ranks on one node.
    node_map() = default;
    /// `node_of`: [world rank] node number; outlives the map and all layouts. Nodes are numbered in
    /// the order of their lowest ranks.
    explicit node_map(std::span<const std::int32_t> node_of) : node_of_(node_of) {}
    /// Every rank on a node of its own.
    [[nodiscard]] static node_map one_per_rank() {
        node_map made;
        made.is_one_per_rank_ = true;
        return made;
    }

    [[nodiscard]] std::int32_t operator[](world_rank rank) const {
        return is_one_per_rank_ ? rank.value() : node_of_.empty() ? 0 : node_of_[rank.index()];
    }
    /// [world rank] node number; empty if there is no such table.
    [[nodiscard]] std::span<const std::int32_t> table() const { return node_of_; }

private:
    std::span<const std::int32_t> node_of_;
    bool is_one_per_rank_ = false;
};

/// A group's members by node. Nodes are numbered in the order of their leaders' group ranks.
struct node_layout {
    std::span<const world_rank> members;      ///< [member]; outlives the layout
    std::vector<std::uint32_t> leaders;       ///< [node] member
    std::vector<std::uint32_t> sizes;         ///< [node] number of members
    std::vector<std::uint32_t> local_members; ///< members on the caller's node, ascending
    std::uint32_t own_node = 0;
    std::uint32_t own_local_index = 0; ///< of the caller in `local_members`
    bool contiguous = true;            ///< each node's members have consecutive group ranks

    node_layout() = default;
    node_layout(node_layout &&) = default;
    node_layout &operator=(node_layout &&) = default;

    [[nodiscard]] std::size_t self() const { return local_members[own_local_index]; }
    [[nodiscard]] bool is_leader() const { return own_local_index == 0; }
    [[nodiscard]] std::size_t num_nodes() const { return leaders.size(); }
    [[nodiscard]] std::size_t node(std::size_t member) const {
        return nodes_.empty() ? 0 : static_cast<std::size_t>(nodes_[member]);
    }
    /// Members on a node, ascending. Linear in the group's size unless contiguous.
    [[nodiscard]] std::vector<std::uint32_t> members_of(std::size_t node) const;
    /// [node] the member with `local_index` on that node; every node must have one. Linear in the
    /// group's size unless contiguous or the index is 0.
    [[nodiscard]] std::vector<std::uint32_t> members_with_index(std::size_t local_index) const;

private:
    friend node_layout make_node_layout(std::span<const world_rank>, std::size_t, const node_map &);

    /// [member] node; empty if there is one node. The table of the node map if the members are its
    /// first ranks, else own_nodes_.
    std::span<const std::int32_t> nodes_;
    std::vector<std::int32_t> own_nodes_;
};

node_layout make_node_layout(std::span<const world_rank> members, std::size_t self,
                             const node_map &nodes);

} // namespace diomp::group
