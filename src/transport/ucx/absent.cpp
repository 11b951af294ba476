// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stub for builds without UCX.
#include "transport/arena.h"
#include "transport/ucx/ucx.h"

namespace diomp::transport::ucx {

// NOLINTBEGIN(performance-unnecessary-value-param): the real function keeps it
result<std::unique_ptr<network>> create(launch::launcher & /*launcher*/, const arena & /*window*/,
                                        const conduit_options & /*options*/, doorbell /*ring*/) {
    return error(OMPX_ERR_UNSUPPORTED, "this build has no UCX",
                 "install libucx-dev (1.13 or newer) and build again");
}
// NOLINTEND(performance-unnecessary-value-param)

} // namespace diomp::transport::ucx
