// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stub for builds without GASNet-EX.
#include "launch/gasnet/launcher.h"

namespace diomp::launch::gasnet {

result<std::unique_ptr<launcher>> join() {
    return error(
        OMPX_ERR_UNSUPPORTED,
        "this process was started by a spawner of GASNet-EX, but this build has no GASNet-EX",
        "use diomp-run or a PMIx launcher, or configure with -DDIOMP_GASNET_CONDUIT=...");
}

void notify_process_exit(int /*exit_status*/) {}

} // namespace diomp::launch::gasnet
