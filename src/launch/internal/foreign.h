// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Detects launchers whose job a process cannot join, so that `srun -n 4 ./app` without a PMI is an
// error and not four worlds of one rank.
#pragma once

#include "base/result.h"
#include "launch/internal/environment.h"

namespace diomp::launch {

/// An error if the environment says that a launcher started several processes. Call after all other
/// launchers have been tried. A job of one process is allowed. A Slurm allocation without srun (no
/// SLURM_STEP_NUM_TASKS) is not a launch.
status reject_foreign_launcher(const environment &lookup);

} // namespace diomp::launch
