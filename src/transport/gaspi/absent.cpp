// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A build without GPI-2.
#include "transport/gaspi/gaspi.h"

namespace diomp::transport::gaspi {

// NOLINTBEGIN(performance-unnecessary-value-param): a build with GPI-2 keeps it
result<std::unique_ptr<network>> create(launch::launcher & /*launcher*/, const arena & /*arena*/,
                                        const conduit_options & /*options*/, doorbell /*ring*/) {
    return error(OMPX_ERR_UNSUPPORTED, "this build has no GPI-2",
                 "configure with -DDIOMP_GPI2=ON where GPI-2 1.6 or newer is installed");
}
// NOLINTEND(performance-unnecessary-value-param)

} // namespace diomp::transport::gaspi
