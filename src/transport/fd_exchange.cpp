// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/fd_exchange.h"

#include "base/descriptor_message.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace diomp::transport {
namespace {

struct abstract_address {
    sockaddr_un address{};
    socklen_t length = 0;
};

result<abstract_address> make_address(const std::string &name) {
    abstract_address made;
    made.address.sun_family = AF_UNIX;
    // A leading zero byte puts the name into the abstract space: no file, nothing to clean up.
    if (name.size() + 1 > sizeof(made.address.sun_path)) {
        return error(OMPX_ERR_SYSTEM, fmt::format("socket name '{}' is too long", name));
    }
    std::memcpy(made.address.sun_path + 1, name.data(), name.size());
    made.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return made;
}

bool same_user(int socket) {
    ucred peer{};
    socklen_t length = sizeof(peer);
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           peer.uid == ::geteuid();
}

status wait_readable(int fd, int timeout_ms, const char *what) {
    pollfd entry{fd, POLLIN, 0};
    int ready = 0;
    do {
        ready = ::poll(&entry, 1, timeout_ms);
    } while (ready < 0 && errno == EINTR);
    if (ready < 0) {
        return system_error(fmt::format("waiting for {}", what), errno);
    }
    if (ready == 0) {
        return error(OMPX_ERR_TIMEOUT, fmt::format("waited {} ms for {}", timeout_ms, what));
    }
    return {};
}

/// Accepts the next connection of a process of the same user. Connections of other users are
/// closed.
result<unique_fd> accept_peer(int listener, int timeout_ms, const char *what) {
    for (;;) {
        DIOMP_TRY(wait_readable(listener, timeout_ms, what));
        unique_fd peer(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        if (peer.valid() && same_user(peer.get())) {
            return peer;
        }
        if (!peer.valid() && errno != EINTR && errno != ECONNABORTED) {
            return system_error("accept", errno);
        }
    }
}

status send_descriptor(int socket, int fd) {
    char byte = 0;
    descriptor_message message(&byte, 1);
    message.attach(fd);
    if (::sendmsg(socket, message.header(), MSG_NOSIGNAL) != 1) {
        return system_error("sending the segment's descriptor to a rank of this node", errno);
    }
    return {};
}

} // namespace

result<unique_fd> listen_for_peers(const std::string &name, int num_peers) {
    auto address = make_address(name);
    DIOMP_TRY(address);
    unique_fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!listener.valid()) {
        return system_error("socket(AF_UNIX)", errno);
    }
    if (::bind(listener.get(), reinterpret_cast<const sockaddr *>(&address.value().address),
               address.value().length) != 0) {
        return system_error(fmt::format("binding the abstract socket '{}'", name), errno);
    }
    if (::listen(listener.get(), num_peers) != 0) {
        return system_error("listen", errno);
    }
    return listener;
}

status serve_descriptor(int listener, int fd, int num_peers, int timeout_ms) {
    for (int served = 0; served < num_peers; ++served) {
        auto peer =
            accept_peer(listener, timeout_ms, "the other ranks of this node to fetch the segment");
        DIOMP_TRY(peer);
        DIOMP_TRY(send_descriptor(peer.value().get(), fd));
    }
    return {};
}

result<unique_fd> fetch_descriptor(const std::string &name, int timeout_ms) {
    auto address = make_address(name);
    DIOMP_TRY(address);
    unique_fd const socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket.valid()) {
        return system_error("socket(AF_UNIX)", errno);
    }
    if (::connect(socket.get(), reinterpret_cast<const sockaddr *>(&address.value().address),
                  address.value().length) != 0) {
        return system_error(fmt::format("connecting to the node's first rank at '{}'", name),
                            errno);
    }
    if (!same_user(socket.get())) {
        return error(OMPX_ERR_SYSTEM, fmt::format("the socket '{}' belongs to another user", name));
    }
    DIOMP_TRY(wait_readable(socket.get(), timeout_ms, "the node's first rank to send the segment"));
    char byte = 0;
    descriptor_message message(&byte, 1);
    if (::recvmsg(socket.get(), message.header(), MSG_CMSG_CLOEXEC) != 1) {
        return system_error("receiving the segment's descriptor", errno);
    }
    unique_fd received = message.take();
    if (!received.valid()) {
        return error(OMPX_ERR_SYSTEM, "the node's first rank sent no descriptor");
    }
    return received;
}

status send_descriptors(const std::string &name, std::span<const std::byte> bytes,
                        std::span<const int> fds) {
    auto address = make_address(name);
    DIOMP_TRY(address);
    unique_fd const socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid() ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr *>(&address.value().address),
                  address.value().length) != 0) {
        return system_error(fmt::format("connecting to the socket '{}'", name), errno);
    }
    if (!same_user(socket.get())) {
        return error(OMPX_ERR_SYSTEM, fmt::format("the socket '{}' belongs to another user", name));
    }
    descriptors_message<max_descriptors> message(const_cast<std::byte *>(bytes.data()),
                                                 bytes.size());
    message.attach(fds);
    if (::sendmsg(socket.get(), message.header(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        static_cast<ssize_t>(bytes.size())) {
        return system_error("sending descriptors to a rank of this node", errno);
    }
    return {};
}

result<descriptor_bundle> receive_descriptors(int listener, int timeout_ms) {
    constexpr const char *what = "descriptors of a rank of this node";
    auto peer = accept_peer(listener, timeout_ms, what);
    DIOMP_TRY(peer);
    DIOMP_TRY(wait_readable(peer.value().get(), timeout_ms, what));
    descriptor_bundle bundle;
    bundle.bytes.resize(max_bundle_bytes);
    descriptors_message<max_descriptors> message(bundle.bytes.data(), bundle.bytes.size());
    ssize_t const length = ::recvmsg(peer.value().get(), message.header(), MSG_CMSG_CLOEXEC);
    if (length <= 0) {
        return system_error("receiving descriptors of a rank of this node", errno);
    }
    bundle.bytes.resize(static_cast<std::size_t>(length));
    bundle.fds = message.take_all();
    if ((message.header()->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        return error(OMPX_ERR_SYSTEM, "descriptors of a rank of this node did not all arrive",
                     "see the limit of open files (ulimit -n)");
    }
    return bundle;
}

} // namespace diomp::transport
