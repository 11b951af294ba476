// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Network through GASNet-EX and one of its conduits (smp, udp, ucx, ibv, ofi, mpi).
// Design: docs/conduits.md.
#pragma once

#include "transport/arena.h"
#include "transport/network.h"
#include "transport/options.h"

namespace diomp::transport::gasnet {

#ifdef DIOMP_HAVE_GASNET
inline constexpr bool is_built = true;
#else
inline constexpr bool is_built = false;
#endif

/// Collective. `arena` must outlive the network. A build without GASNet-EX gives
/// OMPX_ERR_UNSUPPORTED.
result<std::unique_ptr<network>> create(launch::launcher &launcher, const arena &arena,
                                        const conduit_options &options, doorbell ring);

} // namespace diomp::transport::gasnet
