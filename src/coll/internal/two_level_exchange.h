// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exchanges between nodes, after the agreement.
//
// allgather, if the members of each node have consecutive group ranks: the leaders receive the
// blocks of other nodes directly in dst, where each node's blocks are one range; from each of the
// other nodes, or by Bruck's algorithm in rings of ranges where that is faster.
//
// alltoall of small blocks, if the nodes are alike and their members consecutive: the members of a
// node put their blocks into their stage buffers. The member with local index i collects the blocks
// for the nodes i, i + m, i + 2m, ... (m members per node), sends them to each of these nodes as
// one message, and puts what it receives into its stage buffer. A rank sends 1 / m^2 of the
// messages of the pairwise exchange; every core copies twice as much.
//
// alltoall of small blocks between many nodes of one member each: Bruck's algorithm.
#pragma once

#include "coll/internal/two_level.h"

#include <cstddef>

namespace diomp::coll {

/// Whether each node has one member.
[[nodiscard]] bool has_one_member_each(const two_level_call &call);
/// Whether all nodes have equally many members, two or more, with consecutive group ranks.
[[nodiscard]] bool has_alike_nodes(const two_level_call &call);

/// Whether two_level_allgather_ranges can run the call.
[[nodiscard]] bool has_ranges(const two_level_call &call);
status two_level_allgather_ranges(two_level_call &call);

/// Bytes of each block that fit into stage buffers of `stage_bytes` in an alltoall by nodes; 0: it
/// is not faster than the pairwise exchange or another one is chosen, or the nodes differ. Equal on
/// all members.
[[nodiscard]] std::size_t grouped_chunk_bytes(const two_level_call &call, std::size_t stage_bytes);
status two_level_grouped_alltoall(two_level_call &call, std::size_t chunk_bytes);

/// Whether members forward small blocks of others, so that each has log2 n partners and messages
/// instead of n - 1: between many nodes of one member each. Equal on all members.
[[nodiscard]] bool forwards_blocks(const two_level_call &call);
status two_level_forwarded_alltoall(two_level_call &call);

} // namespace diomp::coll
