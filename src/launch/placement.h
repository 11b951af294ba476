// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which node each rank of a job is on, and its position there. Nodes are numbered in the order of
// their lowest ranks; each rank has a local rank on its own node.
//
// The first rank of each node publishes the ranks of its node. Rank 0 reads these lists and
// publishes one text for all, so a start takes as many look-ups as there are nodes, by one rank,
// and one or two by each other rank. The text has a part for each range of equal nodes, so it has
// some bytes for a regular job of any size.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::launch {

class launcher;

class placement {
public:
    /// All ranks on one node.
    explicit placement(int num_ranks);
    /// `nodes`: the ranks of each node, ascending; nodes in the order of their lowest ranks. Every
    /// rank from 0 to num_ranks - 1 must be on one node.
    static result<placement> from_nodes(int num_ranks, std::span<const std::vector<int>> nodes);
    /// Reads to_text(). OMPX_ERR_SYSTEM if it is malformed.
    static result<placement> from_text(int num_ranks, std::string_view text);

    [[nodiscard]] int num_ranks() const { return num_ranks_; }
    [[nodiscard]] int num_nodes() const { return num_nodes_; }
    /// Ranks of the largest node.
    [[nodiscard]] int max_per_node() const { return max_per_node_; }
    [[nodiscard]] std::string to_text() const;
    /// Writes the node number and the local rank of every rank: [world rank].
    void fill(std::span<std::int32_t> nodes, std::span<std::int32_t> locals) const;

private:
    /// `count` consecutive ranks. The first one is on `node` with local rank `local`. Each further
    /// rank is on the next node with the same local rank (cyclic), or the next one of the same
    /// node, and after `per_node` ranks on the next node from `local` on.
    struct rank_range {
        int count = 0;
        int node = 0;
        int local = 0;
        int per_node = 0; ///< 0: cyclic
    };

    struct seat {
        std::int32_t node = 0;
        std::int32_t local = 0;
        bool operator==(const seat &) const = default;
    };

    [[nodiscard]] static seat seat_in(const rank_range &part, int index);
    [[nodiscard]] static rank_range longest_range(std::span<const seat> from);
    /// False if the range is not possible here.
    [[nodiscard]] bool append(const rank_range &part);

    placement() = default;

    int num_ranks_ = 0;
    int num_nodes_ = 0;
    int max_per_node_ = 0;
    std::vector<rank_range> ranges_;
};

/// Publishes the ranks of this node if the caller is its first rank. Call before a fence of all
/// ranks, after which rank 0 calls collect_placement().
status publish_node(launcher &launcher, std::string_view version);
/// Rank 0 only: reads the nodes of all ranks. OMPX_ERR_UNSUPPORTED if a node has another version.
result<placement> collect_placement(launcher &launcher, std::string_view version);
/// Rank 0 only: publishes it. Call before a fence, after which all ranks call fetch_placement().
status publish_placement(launcher &launcher, const placement &of_job);
result<placement> fetch_placement(launcher &launcher);

} // namespace diomp::launch
