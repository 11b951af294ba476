// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank started by a launcher with PMI-1 or PMI-2 over PMI_FD: MPICH's mpiexec.hydra,
// `srun --mpi=pmi2`, flux.
//
// Cost of start-up for N ranks on M nodes. A fence is the launcher's tree over its M processes, and
// in both protocols it distributes all values to all of them: N values per node, whether they are
// read later or not. get() takes, per 500 bytes of value, one round trip to the launcher's process
// on this node (20 us), or to the first node under hydra with PMI-2. Joining is one fence and one
// get() per rank of the own node; N of them if the launcher does not report which ranks share
// nodes.
#pragma once

#include "launch/internal/environment.h"
#include "launch/launch.h"

namespace diomp::launch::pmi {

/// Protocol version, "1" or "2". Default: 2 under Slurm, otherwise 1.
inline constexpr const char *version_variable = "DIOMP_LAUNCH_PMI_VERSION";

/// True if a launcher of this kind describes this process.
bool present(const environment &lookup);

/// Joins the job and takes ownership of the socket. Does not change the environment.
result<std::unique_ptr<launcher>> join(const environment &lookup);

/// Removes the launcher's variables, since its socket is closed in children of this rank.
void forget_environment();

} // namespace diomp::launch::pmi
