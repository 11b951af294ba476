// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Network through GPI-2, the implementation of GASPI: InfiniBand and TCP.
// Design: docs/conduits.md.
#pragma once

#include "transport/arena.h"
#include "transport/network.h"
#include "transport/options.h"

namespace diomp::transport::gaspi {

#ifdef DIOMP_HAVE_GASPI
inline constexpr bool is_built = true;
#else
inline constexpr bool is_built = false;
#endif

/// Collective. `arena` must outlive the network. A build without GPI-2 gives
/// OMPX_ERR_UNSUPPORTED.
result<std::unique_ptr<network>> create(launch::launcher &launcher, const arena &arena,
                                        const conduit_options &options, doorbell ring);

} // namespace diomp::transport::gaspi
