// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/local/socket.h"

#include "base/descriptor_message.h"
#include "launch/local/protocol.h"

#include <array>
#include <cerrno>
#include <memory>
#include <sys/socket.h>

namespace diomp::launch::local {

result<first_packet> receive_first(int socket) {
    first_packet received;
    auto const bytes = std::make_unique_for_overwrite<char[]>(max_packet_bytes); // few are used
    descriptors_message<2> message(bytes.get(), max_packet_bytes);
    ssize_t size = 0;
    do {
        size = recvmsg(socket, message.header(), MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (size < 0 && errno == EINTR);
    if (size < 0 && errno == EAGAIN) {
        return error(OMPX_ERR_STATE, "another process of this rank has joined the job already",
                     "start one DiOMP program per rank; a second one in the same rank cannot join");
    }
    if (size < 0) {
        return system_error("cannot receive from diomp-run", errno);
    }
    if (size == 0) {
        return error(OMPX_ERR_PEER, "diomp-run has ended");
    }
    received.bytes.assign(bytes.get(), static_cast<std::size_t>(size));
    auto descriptors = message.take_all();
    if (descriptors.empty()) {
        return error(OMPX_ERR_SYSTEM, "diomp-run's first packet carries no descriptor");
    }
    received.watch = std::move(descriptors.front());
    received.stacks = descriptors.size() > 1 ? std::move(descriptors[1]) : unique_fd();
    return received;
}

status send_first(int socket, std::string_view bytes, int watch, int stacks) {
    descriptors_message<2> message(const_cast<char *>(bytes.data()), bytes.size());
    std::array<int, 2> const descriptors{watch, stacks};
    message.attach(descriptors);
    if (sendmsg(socket, message.header(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        return system_error("cannot send the first packet to a rank", errno);
    }
    return {};
}

} // namespace diomp::launch::local
