// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/local/socket.h"

#include "launch/local/protocol.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace diomp::launch::local {
namespace {

// A union, as cmsg(3) has it: the buffer must be aligned as cmsghdr.
union control_buffer {
    cmsghdr header;
    std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

} // namespace

result<packet_with_fd> receive_with_fd(int socket) {
    packet_with_fd received;
    received.bytes.resize(max_packet_bytes);
    iovec part{received.bytes.data(), received.bytes.size()};
    control_buffer control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    ssize_t size = 0;
    do {
        size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
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
    const cmsghdr *const header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int))) {
        return error(OMPX_ERR_SYSTEM, "diomp-run's first packet carries no descriptor");
    }
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    received.descriptor = unique_fd(descriptor);
    return received;
}

status send_with_fd(int socket, std::string_view bytes, int descriptor) {
    iovec part{const_cast<char *>(bytes.data()), bytes.size()};
    control_buffer control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    cmsghdr *const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        return system_error("cannot send the first packet to a rank", errno);
    }
    return {};
}

} // namespace diomp::launch::local
