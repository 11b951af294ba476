// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the head and other hosts can be reached.
#pragma once

#include "event_loop.h"

#include <string>
#include <utility>
#include <vector>

namespace diomp::run {

struct listener {
    unique_fd socket; ///< non-blocking
    /// Numeric addresses and ports to try: those of all interfaces, loopback last.
    std::vector<std::pair<std::string, std::string>> addresses;
};

/// At a port that the system chooses; `address` (a name, a numeric address or an interface) limits
/// it to one, empty means all.
result<listener> open_listener(const std::string &address);

/// What this machine is always called, without a look-up: localhost, and its host name.
bool is_own_name(const std::string &name);
/// Where a host is, as this one sees it.
struct host_place {
    bool here = false;   ///< it is this machine
    std::string address; ///< numeric, by which others reach it; empty: not known here
};
host_place find_host(const std::string &name);

} // namespace diomp::run
