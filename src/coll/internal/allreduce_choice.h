// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which algorithm an allreduce over nodes uses, by the model of network_costs.h. The one place that
// decides it, from what all members know.
//
// sliced: every member owns a slice, which it combines from the operands of its node and then
// exchanges with the owners of the slice on the other nodes (sliced_allreduce.cpp). Copies a node's
// data three times in every core, and sends a slice per member. leaders: the other algorithms of
// two_level.h, in which the leaders send whole operands, or large slices follow an agreement.
//
// N nodes, m members per node, b bytes, s = b / m; us until the last member has returned.
//
//  exchange     messages of a member       bytes between nodes, of each node and direction
//  doubling     log2 N                     b log2 N
//  halving      2 log2 N                   2 b (N - 1) / N
//   h rounds    log2 N + h                 2 b (1 - 2^-h) + (log2 N - h) b 2^-h
//  direct       2 (N - 1)                  2 b (N - 1) / N
//
// If N is no power of two, doubling and halving fold nodes first: 2 messages and 2 b more.
#pragma once

#include "coll/collective.h"
#include "coll/network_costs.h"

#include <cstddef>

namespace diomp::coll {

/// What the choice depends on; equal on all members.
struct allreduce_shape {
    std::size_t num_nodes = 1;
    std::size_t min_local = 1; ///< members of the node with the fewest
    std::size_t max_local = 1;
    std::size_t count = 0; ///< elements
    std::size_t unit_bytes = 1;
    slicing_options slicing;
    network_costs costs{};

    bool operator==(const allreduce_shape &) const = default;
};

struct allreduce_choice {
    bool is_sliced = false;
    // Of a sliced call:
    coll::slicing how;
    std::size_t num_slices = 0;     ///< the first members of each node own one each
    std::size_t chunk_elements = 0; ///< of the operand, at a time
    std::size_t stage_bytes = 0;    ///< a chunk of the operand and a slice of a result
};

/// Thread-safe. The last choices are remembered.
allreduce_choice choose_allreduce(const allreduce_shape &shape);

} // namespace diomp::coll
