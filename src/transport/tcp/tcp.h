// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Network over the system's TCP sockets; needs no library. See docs/conduits.md.
#pragma once

#include "transport/create.h"
#include "transport/network.h"

namespace diomp::transport::tcp {

inline constexpr bool is_built = true;

/// Collective. `arena` must outlive the network.
result<std::unique_ptr<network>> create(launch::launcher &launcher, const arena &arena,
                                        const conduit_options &options, doorbell ring);

} // namespace diomp::transport::tcp
