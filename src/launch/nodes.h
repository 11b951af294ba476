// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "launch/launch.h"

namespace diomp::launch {

/// Presents the job as if every `node_size` ranks of a machine were a node of their own: for tests
/// of communication between nodes on a single machine (DIOMP_NODE_SIZE).
std::unique_ptr<launcher> split_nodes(std::unique_ptr<launcher> inner, int node_size);

} // namespace diomp::launch
