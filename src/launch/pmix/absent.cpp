// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replaces pmix/launcher.cpp in builds without the headers of PMIx.
#include "launch/pmix/launcher.h"

namespace diomp::launch::pmix {

bool present(const environment &lookup) {
    return lookup("PMIX_RANK") != nullptr && lookup("PMIX_NAMESPACE") != nullptr;
}

result<std::unique_ptr<launcher>> join(const environment & /*lookup*/) {
    return error(OMPX_ERR_UNSUPPORTED,
                 "this process was started by a PMIx launcher, and this libdiomp was built without "
                 "PMIx",
                 "build DiOMP where libpmix-dev is installed, or start with diomp-run");
}

} // namespace diomp::launch::pmix
