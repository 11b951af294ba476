// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A build without GPI-2: foreign.cpp says so to whom gaspi_run has started.
#include "launch/gaspi/launcher.h"

namespace diomp::launch::gaspi {

bool present(const environment & /*lookup*/) { return false; }

result<std::unique_ptr<launcher>> join(const environment & /*lookup*/) {
    return error(OMPX_ERR_UNSUPPORTED, "this build has no GPI-2",
                 "configure with -DDIOMP_GPI2=ON where GPI-2 1.6 or newer is installed");
}

} // namespace diomp::launch::gaspi
