// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-info --topology: the node, its devices, the paths between them, and who would get which.
#pragma once

namespace diomp::info {

struct topology_options {
    int ranks = 0;            ///< of this node; 0: those of the job, or none
    int devices_per_rank = 0; ///< 0: as the environment says
    bool as_json = false;
};

/// Prints it; in a job rank 0 does, of its node. Status 1 if ranks and devices do not fit together,
/// or settings are malformed.
int print_topology(topology_options options);

} // namespace diomp::info
