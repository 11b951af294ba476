// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The nodes of the world's ranks and of a group's members.
//
// node: a set of ranks that load and store each other's slots; one machine may hold several nodes.
// leader: the member of a node with the lowest group rank; it communicates with the other nodes.
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace diomp::launch {
class launcher;
}
namespace diomp::transport {
class conduit;
}

namespace diomp::group {

/// The node number of every rank of the world, equal on all ranks. Takes 4 bytes per rank if there
/// are several nodes, else no memory.
class node_map {
public:
    /// All ranks on one node.
    node_map() = default;
    /// `node_of`: [world rank] node number.
    explicit node_map(std::vector<std::int32_t> node_of) : node_of_(std::move(node_of)) {}

    [[nodiscard]] std::int32_t operator[](world_rank rank) const {
        return node_of_.empty() ? 0 : node_of_[rank.index()];
    }

private:
    std::vector<std::int32_t> node_of_;
};

/// Publishes the ranks that the conduit maps directly. Call before a fence of the launcher.
status publish_node(launch::launcher &launcher, const transport::conduit &transport);
/// Fetches the published nodes. Call after that fence. One look-up per node: the lowest rank that
/// has no node yet is the lowest one of its node, which has published the list.
result<node_map> fetch_node_map(launch::launcher &launcher, const transport::conduit &transport);

/// A group's members by node. Nodes are numbered in the order of their leaders' group ranks.
struct node_layout {
    std::span<const world_rank> members;      ///< [member]; outlives the layout
    std::vector<std::uint32_t> node_of;       ///< [member]; empty if there is one node
    std::vector<std::uint32_t> leaders;       ///< [node] member
    std::vector<std::uint32_t> sizes;         ///< [node] number of members
    std::vector<std::uint32_t> local_members; ///< members on the caller's node, ascending
    std::uint32_t own_node = 0;
    std::uint32_t own_local_index = 0; ///< of the caller in `local_members`
    bool contiguous = true;            ///< each node's members have consecutive group ranks

    [[nodiscard]] std::size_t self() const { return local_members[own_local_index]; }
    [[nodiscard]] bool is_leader() const { return own_local_index == 0; }
    [[nodiscard]] std::size_t num_nodes() const { return leaders.size(); }
    [[nodiscard]] std::size_t node(std::size_t member) const {
        return node_of.empty() ? 0 : node_of[member];
    }
    /// Members on a node, ascending. Linear in the group's size unless contiguous.
    [[nodiscard]] std::vector<std::uint32_t> members_of(std::size_t node) const;
    /// [node] the member with `local_index` on that node; every node must have one. Linear in the
    /// group's size unless contiguous or the index is 0.
    [[nodiscard]] std::vector<std::uint32_t> members_with_index(std::size_t local_index) const;
};

node_layout make_node_layout(std::span<const world_rank> members, std::size_t self,
                             const node_map &nodes);

} // namespace diomp::group
