// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "frame_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

namespace diomp::run {
namespace {

void set_option(int socket, int level, int name, int value) {
    setsockopt(socket, level, name, &value,
               sizeof value); // works without it, so errors are ignored
}

/// Sets keepalive so that three probes fit into the time, and limits unacknowledged data to the
/// same time.
void enable_keepalive(int socket, double timeout_s) {
    int const seconds = std::max(1, static_cast<int>(timeout_s / 4));
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
    set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
    set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(timeout_s * 1000));
}

} // namespace

frame_link::frame_link(event_loop &loop, frame_events &events, unique_fd socket,
                       secure::session_keys proven)
    : loop_(loop), events_(events), socket_(std::move(socket)), encoder_(std::move(proven.sending)),
      decoder_(std::move(proven.receiving), max_frame_bytes) {}

result<std::unique_ptr<frame_link>> frame_link::create(event_loop &loop, frame_events &events,
                                                       unique_fd socket,
                                                       secure::session_keys proven,
                                                       double timeout_s) {
    set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    enable_keepalive(socket.get(), timeout_s);
    std::unique_ptr<frame_link> link(
        new frame_link(loop, events, std::move(socket), std::move(proven)));
    auto token = loop.add(link->socket_.get(), EPOLLIN, [self = link.get()](std::uint32_t ready) {
        if ((ready & EPOLLOUT) != 0) {
            self->send_some();
        }
        if ((ready & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
            self->receive();
        }
    });
    DIOMP_TRY(token);
    link->token_ = token.value();
    return link;
}

void frame_link::send(std::string_view frame) {
    if (!socket_ || finishing_) {
        return;
    }
    encoder_.append(out_, frame);
    if (!send_blocked_) {
        send_some();
    }
}

void frame_link::finish_sending() {
    finishing_ = true;
    if (socket_ && flushed()) {
        shutdown(socket_.get(), SHUT_WR);
    }
}

void frame_link::close() {
    loop_.remove(token_);
    socket_.reset();
    out_.clear();
    sent_ = 0;
}

void frame_link::fail(const std::string &why) {
    close();
    events_.on_disconnect(*this, why);
}

void frame_link::send_some() {
    while (socket_ && !flushed()) {
        ssize_t const size = ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_,
                                    MSG_DONTWAIT | MSG_NOSIGNAL);
        if (size >= 0) {
            sent_ += static_cast<std::size_t>(size);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            // Data from the peer may still be unread; reading detects the end of the connection.
            out_.clear();
            sent_ = 0;
        }
    }
    if (!socket_) {
        return;
    }
    bool const blocked = !flushed();
    if (blocked != send_blocked_) {
        send_blocked_ = blocked;
        loop_.modify(token_, EPOLLIN | (blocked ? static_cast<std::uint32_t>(EPOLLOUT) : 0U));
    }
    if (!blocked) {
        out_.clear();
        sent_ = 0;
        if (finishing_) {
            shutdown(socket_.get(), SHUT_WR);
        }
    }
}

void frame_link::receive() {
    // One read per event, so that other descriptors are served too.
    auto const space = decoder_.space();
    ssize_t const size = recv(socket_.get(), space.data(), space.size(), MSG_DONTWAIT);
    if (size > 0) {
        decoder_.commit(static_cast<std::size_t>(size));
        dispatch();
    } else if (size == 0) {
        fail("the connection was closed");
    } else if (errno != EAGAIN && errno != EINTR) {
        fail(fmt::format("the connection failed: {}", std::strerror(errno)));
    }
}

void frame_link::dispatch() {
    while (socket_) { // a handler may close it
        auto const frame = decoder_.next();
        if (!frame) {
            break;
        }
        events_.on_frame(*this, *frame);
    }
    if (socket_ && decoder_.is_broken()) {
        fail("a frame is not authentic or out of order");
    }
}

} // namespace diomp::run
