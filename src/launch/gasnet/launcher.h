// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A job that GASNet-EX's own spawner has started (amudprun, gasnetrun_*): ranks and their number
// are GASNet's, values travel in its active messages.
#pragma once

#include "launch/environment.h"
#include "launch/launch.h"

namespace diomp::launch::gasnet {

/// GASNet's spawner has left its variables. In builds without GASNet-EX too.
[[nodiscard]] bool present(const environment &lookup);
/// Blocks until all ranks are there. A build without GASNet-EX gives OMPX_ERR_UNSUPPORTED.
result<std::unique_ptr<launcher>> join();
/// As launch::end_of_process.
void end_of_process(int exit_status);
/// Children of a rank are no ranks.
void forget_environment();

} // namespace diomp::launch::gasnet
