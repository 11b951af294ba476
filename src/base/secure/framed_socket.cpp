// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/framed_socket.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

namespace diomp::secure {
namespace {

using clock = std::chrono::steady_clock;

bool is_retryable(int code) { return code == EAGAIN || code == EWOULDBLOCK || code == EINTR; }

error connection_closed_error(const char *why) {
    return error(OMPX_ERR_PEER, fmt::format("the connection is closed ({})", why));
}

/// A cipher for one direction, or none.
std::optional<frame_cipher> cipher_for(protection mode, frame_cipher &&from_handshake) {
    if (mode == protection::plain) {
        return std::nullopt;
    }
    return std::move(from_handshake);
}

/// Waits for events; false after the time limit.
bool wait_for(int socket, short events, clock::time_point end) {
    for (;;) {
        auto const left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now()).count();
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
bool send_output(int socket, handshake &exchange, clock::time_point end) {
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

} // namespace

framed_socket::framed_socket(unique_fd socket, session_keys proven, frame_limits limits)
    : socket_(std::move(socket)), peer_(proven.peer), mode_(proven.mode), limits_(limits),
      encoder_(cipher_for(proven.mode, std::move(proven.sending))),
      decoder_(cipher_for(proven.mode, std::move(proven.receiving)), limits.frame_bytes) {
    ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
}

status framed_socket::send(std::string_view frame) {
    if (frame.empty() || frame.size() > limits_.frame_bytes) {
        return error(OMPX_ERR_ARG, fmt::format("a frame has {} bytes, 1 to {} are allowed",
                                               frame.size(), limits_.frame_bytes));
    }
    if (out_.size() - sent_ + frame.size() > limits_.queue_bytes) {
        return error(OMPX_ERR_NOMEM, fmt::format("{} has not received {} queued bytes",
                                                 to_string(peer_), out_.size() - sent_));
    }
    if (sent_ == out_.size()) {
        out_.clear();
        sent_ = 0;
    } else if (sent_ > out_.size() / 2) {
        out_.erase(0, sent_);
        sent_ = 0;
    }
    encoder_.append(out_, frame);
    return send_waiting();
}

status framed_socket::send_waiting() {
    while (has_waiting()) {
        ssize_t const sent = ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_,
                                    MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            sent_ += static_cast<std::size_t>(sent);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            return connection_closed_error(::strerrordesc_np(errno));
        }
    }
    return {};
}

status framed_socket::receive(function_ref<bool(std::string_view)> handle) {
    auto const space = decoder_.space();
    ssize_t const got = ::recv(socket_.get(), space.data(), space.size(), MSG_DONTWAIT);
    int const code = got < 0 ? errno : 0;
    decoder_.commit(got > 0 ? static_cast<std::size_t>(got) : 0);
    while (auto const frame = decoder_.next()) {
        if (!handle(*frame)) {
            return {};
        }
    }
    if (decoder_.is_broken()) {
        return error(OMPX_ERR_PEER, fmt::format("{} sent a frame that is too long, or the bytes "
                                                "were changed on their way",
                                                to_string(peer_)));
    }
    if (got == 0 || (got < 0 && !is_retryable(code))) {
        return connection_closed_error(got == 0 ? "closed by the other end"
                                                : ::strerrordesc_np(code));
    }
    return {};
}

result<session_keys> complete_handshake(int socket, handshake exchange, double timeout_s) {
    auto const end = clock::now() + std::chrono::duration_cast<clock::duration>(
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
            return connection_closed_error(::strerrordesc_np(errno));
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
