// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/local/socket.h"

#include "base/descriptor_message.h"
#include "launch/local/protocol.h"

#include <cerrno>
#include <sys/socket.h>

namespace diomp::launch::local {

result<packet_with_fd> receive_with_fd(int socket) {
    packet_with_fd received;
    received.bytes.resize(max_packet_bytes);
    descriptor_message message(received.bytes.data(), received.bytes.size());
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
        return error(OMPX_ERR_PEER, "diomp-run is gone");
    }
    received.bytes.resize(static_cast<std::size_t>(size));
    received.descriptor = message.take();
    if (!received.descriptor) {
        return error(OMPX_ERR_SYSTEM, "diomp-run's first packet carries no descriptor");
    }
    return received;
}

status send_with_fd(int socket, std::string_view bytes, int descriptor) {
    descriptor_message message(const_cast<char *>(bytes.data()), bytes.size());
    message.attach(descriptor);
    if (sendmsg(socket, message.header(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        return system_error("cannot send the first packet to a rank", errno);
    }
    return {};
}

} // namespace diomp::launch::local
