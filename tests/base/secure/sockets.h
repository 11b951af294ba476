// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Connected sockets on loopback, for tests.
#pragma once

#include "base/unique_fd.h"

#include <arpa/inet.h>
#include <cstdint>
#include <netinet/in.h>
#include <sys/socket.h>

namespace diomp::secure::testing {

struct loopback_listener {
    unique_fd socket;
    std::uint16_t port = 0;
};

inline sockaddr_in loopback_address(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

inline loopback_listener listen_on_loopback() {
    loopback_listener made;
    made.socket = unique_fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback_address(0);
    socklen_t size = sizeof(address);
    if (::bind(made.socket.get(), reinterpret_cast<sockaddr *>(&address), size) == 0 &&
        ::listen(made.socket.get(), SOMAXCONN) == 0 &&
        ::getsockname(made.socket.get(), reinterpret_cast<sockaddr *>(&address), &size) == 0) {
        made.port = ntohs(address.sin_port);
    }
    return made;
}

/// Blocking; invalid if nothing listens there.
inline unique_fd connect_to(std::uint16_t port) {
    unique_fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in const address = loopback_address(port);
    if (::connect(made.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0) {
        made.reset();
    }
    return made;
}

} // namespace diomp::secure::testing
