// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/opening_connections.h"

#include "base/secure/epoll.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

namespace diomp::secure {
namespace {

constexpr std::uint64_t timer_tag = std::numeric_limits<std::uint64_t>::max();

} // namespace

opening_connections::opening_connections() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

result<opening_connections> opening_connections::create() {
    opening_connections made;
    if (!made.epoll_.valid() || made.timer_.fd() < 0 ||
        !epoll_update(made.epoll_.get(), EPOLL_CTL_ADD, made.timer_.fd(), EPOLLIN, timer_tag)) {
        return system_error("waiting for connections that are being opened", errno);
    }
    return made;
}

void opening_connections::add(std::uint64_t tag, unique_fd socket, handshake exchange,
                              clock::duration time_limit, clock::duration handshake_limit) {
    int const descriptor = socket.get();
    attempts_.insert_or_assign(tag, attempt{std::move(socket), std::move(exchange),
                                            clock::now() + time_limit, handshake_limit});
    if (!epoll_update(epoll_.get(), EPOLL_CTL_ADD, descriptor, EPOLLOUT, tag)) {
        end(tag, outcome::unreachable, ::strerrordesc_np(errno));
    }
    arm_timer();
}

std::vector<opening_connections::attempt_result> opening_connections::advance() {
    std::array<epoll_event, 64> events{};
    int const count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) {
        std::uint64_t const tag = events[static_cast<std::size_t>(i)].data.u64;
        if (tag == timer_tag) {
            timer_.clear();
            end_expired();
        } else if (auto const found = attempts_.find(tag); found != attempts_.end()) {
            advance_attempt(tag, found->second);
            if (!ended_.empty() && ended_.back().how == outcome::proven) {
                break; // epoll reports the others again
            }
        }
    }
    if (count > 0) {
        arm_timer();
    }
    return std::exchange(ended_, {});
}

void opening_connections::end(std::uint64_t tag, outcome how, std::string why) {
    attempts_.erase(tag);
    ended_.push_back({.tag = tag, .how = how, .socket = {}, .proven = {}, .why = std::move(why)});
}

/// False: the connection failed.
bool opening_connections::finish_connecting(std::uint64_t tag, attempt &which) {
    int code = 0;
    socklen_t size = sizeof(code);
    ::getsockopt(which.socket.get(), SOL_SOCKET, SO_ERROR, &code, &size);
    if (code != 0) {
        end(tag, outcome::unreachable, ::strerrordesc_np(code));
        return false;
    }
    which.is_connected = true;
    which.end += which.handshake_limit;
    epoll_update(epoll_.get(), EPOLL_CTL_MOD, which.socket.get(), EPOLLIN, tag);
    return true;
}

/// False: the attempt has ended.
bool opening_connections::send_output(std::uint64_t tag, attempt &which) {
    auto const output = which.exchange.output();
    if (output.empty()) {
        return true;
    }
    ssize_t const sent =
        ::send(which.socket.get(), output.data(), output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    // a new connection has space for so few bytes
    if (sent != static_cast<ssize_t>(output.size())) {
        end(tag, outcome::closed, ::strerrordesc_np(errno));
        return false;
    }
    which.exchange.discard_output(output.size());
    return true;
}

void opening_connections::advance_attempt(std::uint64_t tag, attempt &which) {
    if ((!which.is_connected && !finish_connecting(tag, which)) || !send_output(tag, which)) {
        return;
    }
    std::array<unsigned char, handshake::response_bytes> buffer{};
    while (which.exchange.condition() == handshake::state::running) {
        // Read no more than the handshake needs: the following bytes belong to the connection's
        // owner.
        ssize_t const got =
            ::recv(which.socket.get(), buffer.data(), which.exchange.num_missing(), MSG_DONTWAIT);
        if (got <= 0) {
            if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
                end(tag, outcome::closed,
                    "it has closed the connection before it proved who it is");
            }
            return;
        }
        which.exchange.receive(std::span(buffer).first(static_cast<std::size_t>(got)));
    }
    if (which.exchange.condition() != handshake::state::done) {
        end(tag, outcome::refused, which.exchange.describe_failure());
    } else if (send_output(tag, which)) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, which.socket.get(), nullptr);
        ended_.push_back({.tag = tag,
                          .how = outcome::proven,
                          .socket = std::move(which.socket),
                          .proven = which.exchange.take_session_keys(),
                          .why = {}});
        attempts_.erase(tag);
    }
}

void opening_connections::end_expired() {
    auto const now = clock::now();
    std::vector<std::uint64_t> expired;
    for (auto const &[tag, each] : attempts_) {
        if (each.end <= now) {
            expired.push_back(tag);
        }
    }
    for (std::uint64_t const tag : expired) {
        end(tag, outcome::unreachable, "no answer");
    }
}

void opening_connections::arm_timer() {
    if (!attempts_.empty()) {
        auto const first = std::ranges::min_element(
            attempts_, {}, [](auto const &item) { return item.second.end; });
        timer_.arm(first->second.end);
    }
}

} // namespace diomp::secure
