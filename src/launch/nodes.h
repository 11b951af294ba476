// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "launch/launch.h"

namespace diomp::launch {

/// The same job, as if every `node_size` ranks of a machine were a node of their own: for tests of
/// what happens between nodes on a machine that has no others (DIOMP_NODE_SIZE).
std::unique_ptr<launcher> split_nodes(std::unique_ptr<launcher> whole, int node_size);

} // namespace diomp::launch
