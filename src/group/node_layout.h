// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which ranks share a node, for the world and for groups.
//
// Glossary: node: ranks that load and store each other's slots; one machine may hold several.
// leader: the member of a node with the lowest group rank, who speaks for it to other nodes.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "conduit/conduit.h"
#include "launch/launch.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace diomp::group {

/// The node of every rank of the world, as a number that all ranks agree about. 4 bytes per rank if
/// there are several nodes, else nothing.
class node_map {
public:
    /// Everybody on one node.
    node_map() = default;
    /// [world rank] number of its node.
    explicit node_map(std::vector<std::int32_t> node_of) : node_of_(std::move(node_of)) {}

    [[nodiscard]] std::int32_t operator[](world_rank rank) const {
        return node_of_.empty() ? 0 : node_of_[rank.index()];
    }

private:
    std::vector<std::int32_t> node_of_;
};

/// Tells the others which ranks the conduit reaches directly; before a fence of the launcher.
status publish_node(launch::launcher &launcher, const conduit::conduit &transport);
/// After that fence. One look-up per node: the lowest rank that is not known yet is always the
/// lowest one of its node, and that one has published the list.
result<node_map> learn_nodes(launch::launcher &launcher, const conduit::conduit &transport);

/// How a group's members lie on nodes. Nodes are numbered by their leaders' group ranks.
struct node_layout {
    std::vector<std::uint32_t> node_of; ///< [member]; empty if there is one node
    std::vector<std::uint32_t> leaders; ///< [node] member
    std::vector<std::uint32_t> sizes;   ///< [node] members
    std::vector<std::uint32_t> here;    ///< members on the caller's node, ascending
    std::uint32_t own_node = 0;
    std::uint32_t own_place = 0; ///< of the caller in `here`
    bool contiguous = true;      ///< the members of each node follow each other

    [[nodiscard]] std::size_t num_nodes() const { return leaders.size(); }
    [[nodiscard]] std::size_t node(std::size_t member) const {
        return node_of.empty() ? 0 : node_of[member];
    }
    /// Members on a node, ascending. Linear in the group's size unless contiguous.
    [[nodiscard]] std::vector<std::uint32_t> members_of(std::size_t node) const;
    /// [node] the member at `place` there; every node must have one. Linear in the group's size
    /// unless contiguous or place 0.
    [[nodiscard]] std::vector<std::uint32_t> members_at(std::size_t place) const;
};

node_layout lay_out(std::span<const world_rank> members, std::size_t self, const node_map &nodes);

} // namespace diomp::group
