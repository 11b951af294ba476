// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sending and receiving diomp-run's first packet, which carries descriptors.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <string>
#include <string_view>

namespace diomp::launch::local {

struct first_packet {
    std::string bytes;
    unique_fd watch;  ///< at end of file when the job ends
    unique_fd stacks; ///< a byte or the end of file: the rank is to print its stacks
};

/// Receives the packet that diomp-run has put into the socket. Does not block: an empty socket is
/// an error, since the packet was sent before the process started.
result<first_packet> receive_first(int socket);
/// Sends the packet with copies of the descriptors. Does not block.
status send_first(int socket, std::string_view bytes, int watch, int stacks);

} // namespace diomp::launch::local
