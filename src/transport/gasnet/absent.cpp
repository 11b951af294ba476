// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A build without GASNet-EX.
#include "transport/gasnet/gasnet.h"

namespace diomp::transport::gasnet {

// NOLINTBEGIN(performance-unnecessary-value-param): a build with GASNet-EX keeps it
result<std::unique_ptr<network>> create(launch::launcher & /*launcher*/, const arena & /*arena*/,
                                        const conduit_options & /*options*/, doorbell /*ring*/) {
    return error(OMPX_ERR_UNSUPPORTED, "this build has no GASNet-EX",
                 "configure with -DDIOMP_GASNET_CONDUIT=udp (or smp, ucx, ibv, ofi, mpi) where "
                 "GASNet-EX 2023.9 or newer is installed");
}
// NOLINTEND(performance-unnecessary-value-param)

} // namespace diomp::transport::gasnet
