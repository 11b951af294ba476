// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Hands one file descriptor from a node's first rank to the others, over an abstract Unix socket
// that vanishes with the process. Both sides check that the other runs under the same user.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <string>

namespace diomp::conduit {

/// Opens the socket; `name` must be unique on the node (it is not a path).
result<unique_fd> listen_for_peers(const std::string &name, int num_peers);
/// Accepts `num_peers` ranks and sends each the descriptor. Blocks at most `timeout_ms`.
status serve_descriptor(int listener, int fd, int num_peers, int timeout_ms);
/// Connects and receives the descriptor. Blocks at most `timeout_ms`.
result<unique_fd> fetch_descriptor(const std::string &name, int timeout_ms);

} // namespace diomp::conduit
