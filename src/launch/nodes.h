// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "launch/launch.h"

namespace diomp::launch {

/// Presents the job as if every `node_size` ranks of a machine were a node of their own: for tests
/// of communication between nodes on a single machine (DIOMP_NODE_SIZE).
std::unique_ptr<launcher> split_nodes(std::unique_ptr<launcher> inner, int node_size);

/// Presents the job with these ranks, ascending and with the own one, as the node of this rank.
/// `job_id`: equal on all of them.
std::unique_ptr<launcher> set_node(std::unique_ptr<launcher> inner,
                                   std::vector<world_rank> node_ranks, std::string job_id);

} // namespace diomp::launch
