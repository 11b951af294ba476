// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a whole handshake on a socket, for tests; connections of the runtime never block for one.
#pragma once

#include "base/result.h"
#include "base/secure/handshake.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <poll.h>
#include <span>
#include <sys/socket.h>

namespace diomp::secure {

using handshake_clock = std::chrono::steady_clock;

inline bool is_retryable(int code) {
    return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
}

/// Waits for events; false after the time limit.
inline bool wait_for(int socket, short events, handshake_clock::time_point end) {
    for (;;) {
        auto const left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - handshake_clock::now())
                .count();
        if (left < 0) {
            return false;
        }
        pollfd entry{socket, events, 0};
        int const ready = ::poll(&entry, 1, static_cast<int>(left) + 1);
        if (ready > 0 || (ready < 0 && errno != EINTR)) {
            return true;
        }
    }
}

/// Sends the handshake's output. False: the connection is closed or the time is over.
inline bool send_output(int socket, handshake &exchange, handshake_clock::time_point end) {
    while (!exchange.output().empty()) {
        auto const bytes = exchange.output();
        ssize_t const sent =
            ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            exchange.discard_output(static_cast<std::size_t>(sent));
        } else if (!is_retryable(errno) || !wait_for(socket, POLLOUT, end)) {
            return false;
        }
    }
    return true;
}

/// Blocks up to `timeout_s`. OMPX_ERR_PEER: the peer is not authenticated, or has closed the
/// connection; OMPX_ERR_TIMEOUT.
inline result<session_keys> complete_handshake(int socket, handshake exchange, double timeout_s) {
    auto const end = handshake_clock::now() + std::chrono::duration_cast<handshake_clock::duration>(
                                                  std::chrono::duration<double>(timeout_s));
    std::array<unsigned char, handshake::hello_bytes> buffer{};
    while (send_output(socket, exchange, end) &&
           exchange.condition() == handshake::state::running) {
        // Read no more than the handshake needs: the following bytes belong to the frames.
        ssize_t const got = ::recv(socket, buffer.data(), exchange.num_missing(), MSG_DONTWAIT);
        if (got > 0) {
            exchange.receive(std::span(buffer).first(static_cast<std::size_t>(got)));
        } else if (got == 0) {
            return error(OMPX_ERR_PEER, "the other end has closed the connection during the "
                                        "handshake: it has another secret, or is another program");
        } else if (!is_retryable(errno)) {
            return error(OMPX_ERR_PEER, ::strerrordesc_np(errno));
        } else if (!wait_for(socket, POLLIN, end)) {
            return error(OMPX_ERR_TIMEOUT,
                         fmt::format("the other end has not completed the handshake within {:g} s",
                                     timeout_s));
        }
    }
    if (exchange.condition() != handshake::state::done || !exchange.output().empty()) {
        return error(OMPX_ERR_PEER, exchange.describe_failure());
    }
    return exchange.take_session_keys();
}

} // namespace diomp::secure
