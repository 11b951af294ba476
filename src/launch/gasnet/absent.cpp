// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A build without GASNet-EX.
#include "launch/gasnet/launcher.h"

namespace diomp::launch::gasnet {

result<std::unique_ptr<launcher>> join() {
    return error(OMPX_ERR_UNSUPPORTED,
                 "a spawner of GASNet-EX has started this process, but this build has no GASNet-EX",
                 "use diomp-run or a PMIx launcher, or configure with -DDIOMP_GASNET_CONDUIT=...");
}

void end_of_process(int /*exit_status*/) {}

} // namespace diomp::launch::gasnet
