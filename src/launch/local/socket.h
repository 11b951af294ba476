// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two calls that carry descriptors over a socket: diomp-run's first packet.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <string>
#include <string_view>

namespace diomp::launch::local {

struct first_packet {
    std::string bytes;
    unique_fd watch;  ///< at its end when the job is over
    unique_fd stacks; ///< at its end when ranks are to show their stacks
};

/// Takes the packet that diomp-run left in the socket. Does not block: an empty socket is an error,
/// since the packet was there before the process started.
result<first_packet> receive_first(int socket);
/// Sends it with copies of the descriptors. Does not block.
status send_first(int socket, std::string_view bytes, int watch, int stacks);

} // namespace diomp::launch::local
