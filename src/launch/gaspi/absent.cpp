// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stub for builds without GPI-2; foreign.cpp then reports an error under gaspi_run.
#include "launch/gaspi/launcher.h"

namespace diomp::launch::gaspi {

bool present(const environment & /*lookup*/) { return false; }

result<std::unique_ptr<launcher>> join(const environment & /*lookup*/) {
    return error(OMPX_ERR_UNSUPPORTED, "this build has no GPI-2",
                 "configure with -DDIOMP_GPI2=ON where GPI-2 1.6 or newer is installed");
}

} // namespace diomp::launch::gaspi
