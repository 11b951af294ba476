// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Network through UCX: InfiniBand, RoCE, TCP, whatever UCX drives. docs/conduits.md tells how.
#pragma once

#include "conduit/network.h"

namespace diomp::conduit::ucx {

#ifdef DIOMP_HAVE_UCX
inline constexpr bool is_built = true;
#else
inline constexpr bool is_built = false;
#endif

/// Collective. `window` must outlive the network. A build without UCX gives OMPX_ERR_UNSUPPORTED.
result<std::unique_ptr<network>> create(launch::launcher &launcher, const window &window,
                                        const conduit_options &options, doorbell ring);

} // namespace diomp::conduit::ucx
