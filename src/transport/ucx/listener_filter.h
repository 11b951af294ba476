// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Limits who can connect to UCX's TCP ports. UCX accepts every connection, and a connection can
// write to any memory of the process (UCT's put over TCP names an address), so that no check above
// UCX would come in time. A socket filter makes the system drop packets of other hosts before a
// connection exists.
#pragma once

#include "base/result.h"

#include <netinet/in.h>
#include <span>
#include <vector>

namespace diomp::transport::ucx {

/// TCP sockets of this process that listen.
[[nodiscard]] std::vector<int> listening_sockets();

/// Whether the port of a listening socket stands in `worker_address`, as UCX writes it.
[[nodiscard]] bool is_port_in(int listener, std::span<const std::byte> worker_address);

/// From now on the socket accepts connections from these addresses only (IPv4 ones are mapped into
/// IPv6); accepted connections inherit the filter. An error if there are too many for a filter, or
/// the system refuses it.
status accept_only(int listener, std::span<const in6_addr> sources);

} // namespace diomp::transport::ucx
