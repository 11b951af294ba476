// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two calls that carry a descriptor over a socket.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <string>
#include <string_view>

namespace diomp::launch::local {

struct packet_with_fd {
    std::string bytes;
    unique_fd descriptor;
};

/// Takes the packet that diomp-run left in the socket. Does not block: an empty socket is an error,
/// since the packet was there before the process started.
result<packet_with_fd> receive_with_fd(int socket);
/// Sends a packet and a copy of `descriptor`. Does not block.
status send_with_fd(int socket, std::string_view bytes, int descriptor);

} // namespace diomp::launch::local
