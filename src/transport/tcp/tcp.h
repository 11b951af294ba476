// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Network over the system's TCP sockets; needs no library. See docs/conduits.md.
#pragma once

#include "base/result.h"
#include "transport/network.h"
#include "transport/options.h"

namespace diomp::launch {
class launcher;
}

namespace diomp::transport {
class arena;
}

namespace diomp::transport::tcp {

inline constexpr bool is_built = true;

/// Collective. `arena` must outlive the network.
result<std::unique_ptr<network>> create(launch::launcher &launcher, const arena &arena,
                                        const conduit_options &options, doorbell ring);

} // namespace diomp::transport::tcp
