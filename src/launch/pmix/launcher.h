// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank started by a launcher with PMIx: Open MPI's mpirun, prterun, `srun --mpi=pmix`.
//
// Cost of start-up for N ranks on M nodes. Joining reads the job's description from memory of the
// node's server and compares the ranks of one node, inside the node. fence() is the launcher's
// barrier over its M servers and distributes all values to all of them, where get() reads them
// without communication: N values per node, 20 MB of the server's shared memory for 10^5 ranks with
// 200 bytes each. With collect_limit_variable below N, values stay at the server where they were
// put, and get() requests them from there: one round trip per peer in use. That is not the default
// and works on one node only. Between nodes, with PMIx 4.2.2: under Slurm 22.05, PMIx_Get of a
// value that its owner has committed before the fence returns PMIX_ERR_NOT_FOUND in most jobs if
// the owner had published another value before (also with PMIX_GET_REFRESH_CACHE); a fence that
// collects the values of one rank per node instead never returns. Under Open MPI 4.1.4, PMIx_Get
// hangs in some jobs. What a start fetches does not grow with the world (docs/launch.md), so only
// the exchange between the servers does.
#pragma once

#include "launch/internal/environment.h"
#include "launch/launch.h"

namespace diomp::launch::pmix {

/// Number of ranks up to which fences distribute all values to all nodes; without it, they always
/// do. The value must be equal on all ranks.
inline constexpr const char *collect_limit_variable = "DIOMP_LAUNCH_PMIX_COLLECT";

/// True if a PMIx launcher describes this process.
bool present(const environment &lookup);

/// Joins the job. Blocks. OMPX_ERR_UNSUPPORTED, with a remedy, if libdiomp was built without PMIx
/// or the system has no libpmix.so.2.
result<std::unique_ptr<launcher>> join(const environment &lookup);

} // namespace diomp::launch::pmix
