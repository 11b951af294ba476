// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-info --topology: the node, its devices, the paths between them, and the devices of each
// rank.
#pragma once

namespace diomp::info {

struct topology_options {
    int ranks = 0;            ///< ranks of this node; 0: those of the job, or none
    int devices_per_rank = 0; ///< 0: from the environment
    bool as_json = false;
};

/// Prints the topology; in a job rank 0 prints that of its node, and all ranks must call this.
/// Returns exit status 1 if ranks and devices do not fit together, or settings are malformed.
int print_topology(topology_options options);

} // namespace diomp::info
