// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Network addresses of the head and of other hosts.
#pragma once

#include "core/event_loop.h"

#include <string>
#include <utility>
#include <vector>

namespace diomp::run {

struct listener {
    unique_fd socket; ///< in non-blocking mode
    /// Numeric addresses and ports to connect to: those of all interfaces, loopback last.
    std::vector<std::pair<std::string, std::string>> addresses;
};

/// Listens at a port that the system chooses. `address` (a name, a numeric address or an interface)
/// selects one address; empty means all.
result<listener> open_listener(const std::string &address);

/// Returns whether `name` is "localhost" or this machine's host name. Does no look-up.
bool is_local_name(const std::string &name);
/// A host name, resolved on this machine.
struct resolved_host {
    bool is_local = false; ///< the host is this machine
    std::string address;   ///< numeric, for connections from other hosts; empty: unknown
};
resolved_host resolve_host(const std::string &name);

} // namespace diomp::run
