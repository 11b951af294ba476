// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/control.h"

#include "offload/remote/protocol.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace diomp::offload::remote {
namespace {

using clock = std::chrono::steady_clock;

struct address_list {
    addrinfo *first = nullptr;
    ~address_list() {
        if (first != nullptr) {
            ::freeaddrinfo(first);
        }
    }
};

status look_up(const std::string &host, int port, bool to_listen, address_list &found) {
    addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
    int const code = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                   std::to_string(port).c_str(), &wanted, &found.first);
    if (code != 0) {
        return error(OMPX_ERR_ARG, fmt::format("host '{}': {}", host, ::gai_strerror(code)));
    }
    return {};
}

void set_option(int socket, int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof value);
}

int poll_for(int socket, short events, double timeout_s) {
    auto const end = clock::now() + std::chrono::duration<double>(timeout_s);
    for (;;) {
        int left_ms = -1;
        if (timeout_s > 0) {
            auto const left =
                std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now());
            left_ms = std::max(0, static_cast<int>(left.count()) + 1);
            if (clock::now() >= end) {
                return 0;
            }
        }
        pollfd entry{socket, events, 0};
        int const ready = ::poll(&entry, 1, left_ms);
        if (ready >= 0 || errno != EINTR) {
            return ready;
        }
    }
}

/// 0, or the errno of a connection that did not come about.
int connect_within(int socket, const addrinfo &to, double timeout_s) {
    int const flags = ::fcntl(socket, F_GETFL);
    ::fcntl(socket, F_SETFL, flags | O_NONBLOCK);
    int code = 0;
    if (::connect(socket, to.ai_addr, to.ai_addrlen) != 0) {
        code = errno;
        if (code == EINPROGRESS) {
            socklen_t size = sizeof code;
            code = poll_for(socket, POLLOUT, timeout_s) == 1 &&
                           ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size) == 0
                       ? code
                       : ETIMEDOUT;
        }
    }
    ::fcntl(socket, F_SETFL, flags);
    return code;
}

error lost(const char *why) {
    return error(OMPX_ERR_PEER, fmt::format("the connection is over ({})", why));
}

} // namespace

control_link::control_link(unique_fd socket)
    : socket_(std::move(socket)), most_bytes_(max_frame_bytes) {
    int const fd = socket_.get();
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, silence_s / 4);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, silence_s / 4);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, silence_s * 1000);
}

result<control_link> control_link::connect(const std::string &host, int port, double timeout_s) {
    address_list found;
    DIOMP_TRY(look_up(host, port, false, found));
    int code = EADDRNOTAVAIL;
    for (addrinfo const *each = found.first; each != nullptr; each = each->ai_next) {
        unique_fd socket(::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, 0));
        if (!socket.valid()) {
            code = errno;
            continue;
        }
        code = connect_within(socket.get(), *each, timeout_s);
        if (code == 0) {
            return control_link(std::move(socket));
        }
    }
    return error(OMPX_ERR_PEER, fmt::format("cannot connect to port {} of host {}: {}", port, host,
                                            ::strerrordesc_np(code)));
}

status control_link::send(std::string_view packet) {
    std::lock_guard const guard(sending_);
    auto length = static_cast<std::uint32_t>(packet.size());
    iovec parts[] = {{&length, sizeof length}, {const_cast<char *>(packet.data()), packet.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    while (message.msg_iovlen > 0) {
        ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            int const code = errno;
            if (code == EAGAIN) {
                shut(); // nothing can follow half a frame
            }
            return lost(::strerrordesc_np(code));
        }
        while (message.msg_iovlen > 0 && sent >= static_cast<ssize_t>(message.msg_iov->iov_len)) {
            sent -= static_cast<ssize_t>(message.msg_iov->iov_len);
            ++message.msg_iov;
            --message.msg_iovlen;
        }
        if (message.msg_iovlen > 0) {
            message.msg_iov->iov_base = static_cast<char *>(message.msg_iov->iov_base) + sent;
            message.msg_iov->iov_len -= static_cast<std::size_t>(sent);
        }
    }
    return {};
}

status control_link::read_fully(char *into, std::size_t nbytes, double timeout_s) const {
    while (nbytes > 0) {
        int const ready = poll_for(socket_.get(), POLLIN, timeout_s);
        if (ready == 0) {
            return error(OMPX_ERR_TIMEOUT, fmt::format("no answer within {:g} s", timeout_s));
        }
        ssize_t const got = ::recv(socket_.get(), into, nbytes, 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (got <= 0) {
            return lost(got == 0 ? "closed by the other side" : ::strerrordesc_np(errno));
        }
        into += got;
        nbytes -= static_cast<std::size_t>(got);
    }
    return {};
}

result<std::string> control_link::receive(double timeout_s) {
    std::uint32_t length = 0;
    DIOMP_TRY(read_fully(reinterpret_cast<char *>(&length), sizeof length, timeout_s));
    if (length == 0 || length > most_bytes_) {
        shut();
        return error(OMPX_ERR_ARG, fmt::format("a frame of {} bytes came, up to {} are allowed",
                                               length, most_bytes_));
    }
    std::string packet(length, '\0');
    DIOMP_TRY(read_fully(packet.data(), length, timeout_s));
    return packet;
}

void control_link::limit_sending(std::chrono::milliseconds most) const {
    timeval const limit{most.count() / 1000, most.count() % 1000 * 1000};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void control_link::shut() const { ::shutdown(socket_.get(), SHUT_RDWR); }

result<unique_fd> listen_at(const std::string &address, int port) {
    address_list found;
    DIOMP_TRY(look_up(address, port, true, found));
    int code = EADDRNOTAVAIL;
    for (addrinfo const *each = found.first; each != nullptr; each = each->ai_next) {
        unique_fd socket(
            ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!socket.valid()) {
            code = errno;
            continue;
        }
        set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
        if (::bind(socket.get(), each->ai_addr, each->ai_addrlen) == 0 &&
            ::listen(socket.get(), 64) == 0) {
            return socket;
        }
        code = errno;
    }
    return system_error(fmt::format("listening at port {} of '{}'", port, address), code);
}

result<int> port_of(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket, reinterpret_cast<sockaddr *>(&address), &size) != 0) {
        return system_error("getsockname", errno);
    }
    return address.ss_family == AF_INET6
               ? ntohs(reinterpret_cast<sockaddr_in6 const &>(address).sin6_port)
               : ntohs(reinterpret_cast<sockaddr_in const &>(address).sin_port);
}

} // namespace diomp::offload::remote
