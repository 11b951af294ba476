// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank started by a launcher that speaks PMIx: Open MPI's mpirun, prterun, `srun --mpi=pmix`.
//
// What start-up costs a job of N ranks on M nodes. Joining reads the job's description from memory
// of the node's server and compares the ranks of one node, inside the node. fence() is the
// launcher's barrier over its M servers, and carries all values to all of them, where get() reads
// them without asking anybody: N values per node, 20 MB of the server's shared memory for 10^5
// ranks with 200 bytes each. With collect_limit_variable below N, values stay where they were put,
// and get() asks the owner's server: one round trip per peer that is really spoken to. That is not
// the default and tried on one node only: across nodes, PMIx 4.2.2 under Open MPI 4.1.4 hangs in
// some of such jobs, in PMIx_Get of a value that its owner has committed.
#pragma once

#include "launch/environment.h"
#include "launch/launch.h"

namespace diomp::launch::pmix {

/// Number of ranks up to which fences carry all values everywhere; left out, they always do. The
/// same on all ranks.
inline constexpr const char *collect_limit_variable = "DIOMP_LAUNCH_PMIX_COLLECT";

/// True if a PMIx launcher describes this process.
bool present(const environment &lookup);

/// Joins the job. A libdiomp built without PMIx, or a system without libpmix.so.2, is an error that
/// says what to do.
result<std::unique_ptr<launcher>> join(const environment &lookup);

} // namespace diomp::launch::pmix
