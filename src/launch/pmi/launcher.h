// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank started by a launcher that speaks PMI-1 or PMI-2 over PMI_FD: MPICH's mpiexec.hydra,
// `srun --mpi=pmi2`, flux.
//
// What start-up costs a job of N ranks on M nodes. A fence is the launcher's tree over its M
// processes, and in both protocols it carries all values to all of them: N values per node,
// whatever is read later. get() is one round trip to the launcher's process on this node, 20 us, or
// up to the first node under a hydra that speaks PMI-2, per 500 bytes of value. Joining is one
// fence and one get() per rank of the own node; N of them if the launcher does not tell which ranks
// share nodes.
#pragma once

#include "launch/environment.h"
#include "launch/launch.h"

namespace diomp::launch::pmi {

/// "1" or "2": which of the two to speak. Left out, 2 under Slurm and 1 elsewhere.
inline constexpr const char *version_variable = "DIOMP_LAUNCH_PMI_VERSION";

/// True if a launcher of this kind describes this process.
bool present(const environment &lookup);

/// Joins the job. Takes the socket over. Does not change the environment.
result<std::unique_ptr<launcher>> join(const environment &lookup);

/// Removes the launcher's variables: its socket is closed in children of this rank.
void forget_environment();

} // namespace diomp::launch::pmi
