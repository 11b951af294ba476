// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A job started by GASNet-EX's own spawner (amudprun, gasnetrun_*): rank and size are those of
// GASNet, and values are exchanged by its active messages.
#pragma once

#include "launch/internal/environment.h"
#include "launch/launch.h"

namespace diomp::launch::gasnet {

/// True if variables of GASNet's spawner are set. Also in builds without GASNet-EX.
[[nodiscard]] bool present(const environment &lookup);
/// Blocks until all ranks have joined. OMPX_ERR_UNSUPPORTED in a build without GASNet-EX.
result<std::unique_ptr<launcher>> join();
/// Implements launch::notify_process_exit.
void notify_process_exit(int exit_status);
/// Removes the spawner's variables, so that children of this rank do not try to join.
void forget_environment();

} // namespace diomp::launch::gasnet
