// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Network over the system's own TCP sockets: needs no library. docs/conduits.md tells how.
#pragma once

#include "conduit/network.h"

namespace diomp::conduit::tcp {

inline constexpr bool is_built = true;

/// Collective. `window` must outlive the network.
result<std::unique_ptr<network>> create(launch::launcher &launcher, const window &window,
                                        const conduit_options &options, doorbell ring);

} // namespace diomp::conduit::tcp
