// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Network through UCX: InfiniBand, RoCE, TCP and all that UCX supports. See docs/conduits.md.
#pragma once

#include "base/result.h"
#include "transport/arena.h"
#include "transport/network.h"
#include "transport/options.h"

namespace diomp::launch {
class launcher;
}

namespace diomp::transport::ucx {

#ifdef DIOMP_HAVE_UCX
inline constexpr bool is_built = true;
#else
inline constexpr bool is_built = false;
#endif

/// Collective. `arena` must outlive the network. A build without UCX gives OMPX_ERR_UNSUPPORTED.
result<std::unique_ptr<network>> create(launch::launcher &launcher, const arena &arena,
                                        const conduit_options &options, doorbell ring);

} // namespace diomp::transport::ucx
