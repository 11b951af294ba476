// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Recognises launchers that leave a process no way to join its job, so that `srun -n 4 ./app`
// without a PMI is an error and not four worlds of one.
#pragma once

#include "base/result.h"
#include "launch/environment.h"

namespace diomp::launch {

/// An error if the environment says that a launcher started several processes and all ways to join
/// them have been tried. A job of one process is fine. A Slurm allocation without srun (no
/// SLURM_STEP_NUM_TASKS) is not a launch.
status reject_foreign_launcher(const environment &lookup);

} // namespace diomp::launch
