// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// File descriptors between ranks of a node, over abstract Unix sockets, which disappear with the
// process: at start-up one from the node's first rank to the others, later some from their owner to
// a rank that requests them. Both sides check that the other runs under the same user.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace diomp::transport {

/// Opens the socket; `name` must be unique on the node (it is not a path).
result<unique_fd> listen_for_peers(const std::string &name, int num_peers);
/// Accepts `num_peers` ranks and sends each the descriptor. Blocks at most `timeout_ms`.
status serve_descriptor(int listener, int fd, int num_peers, int timeout_ms);
/// Connects and receives the descriptor. Blocks at most `timeout_ms`.
result<unique_fd> fetch_descriptor(const std::string &name, int timeout_ms);

/// Maximum descriptors, and bytes beside them, of one bundle.
inline constexpr std::size_t max_descriptors = 64;
inline constexpr std::size_t max_bundle_bytes = std::size_t{16} << 10;
struct descriptor_bundle {
    std::vector<std::byte> bytes;
    std::vector<unique_fd> fds;
};
/// Sends a bundle to the process that listens under this name (listen_for_peers). The bytes are not
/// empty. Does not block.
status send_descriptors(const std::string &name, std::span<const std::byte> bytes,
                        std::span<const int> fds);
/// Accepts one bundle. Blocks at most `timeout_ms`.
result<descriptor_bundle> receive_descriptors(int listener, int timeout_ms);

} // namespace diomp::transport
