// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/pending_connections.h"

#include "base/secure/epoll.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace diomp::secure {
namespace {

constexpr std::uint64_t listener_id = 0;
constexpr std::uint64_t timer_id = 1;
constexpr std::uint64_t first_id = 2;
/// Limit per call of advance(), so that a flood of connections does not block its caller.
constexpr int max_accepts_per_call = 64;

unique_fd open_spare() { return unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool is_out_of_descriptors(int code) { return code == EMFILE || code == ENFILE; }

/// Errors of one connection only (accept(2)): the next one may be fine.
bool is_about_one_connection(int code) {
    switch (code) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPERM:
        return true;
    default:
        return false;
    }
}

} // namespace

std::string peer_address(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    std::array<char, NI_MAXHOST> text{};
    auto *const generic = reinterpret_cast<sockaddr *>(&address);
    if (::getpeername(socket, generic, &size) != 0) {
        return "a disconnected peer";
    }
    if (address.ss_family == AF_UNIX) {
        return "a local process";
    }
    bool const is_known =
        ::getnameinfo(generic, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0;
    return is_known ? std::string(text.data()) : "an unknown address";
}

void refusal_reports::add(const std::string &text) {
    if (limiter_.permits()) {
        report_(text);
    }
}

void refusal_reports::add(int socket, const std::string &why) {
    if (!limiter_.permits()) {
        return;
    }
    long const suppressed = limiter_.take_suppressed();
    std::string const others =
        suppressed == 0 ? "" : fmt::format(" ({} more reports suppressed)", suppressed);
    report_(fmt::format("connection from {}: {}{}", peer_address(socket), why, others));
}

pending_connections::pending_connections(unique_fd listener, handshake_maker make,
                                         refusal_reports::sink report,
                                         const pending_options &options)
    : listener_(std::move(listener)), make_(std::move(make)), options_(options),
      reports_(std::move(report), options.reports_per_minute),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)), spare_(open_spare()), next_id_(first_id) {}

result<pending_connections> pending_connections::create(unique_fd listener, handshake_maker make,
                                                        refusal_reports::sink report,
                                                        const pending_options &options) {
    pending_connections made(std::move(listener), std::move(make), std::move(report), options);
    if (!made.epoll_.valid() || made.timer_.fd() < 0 ||
        !epoll_update(made.epoll_.get(), EPOLL_CTL_ADD, made.listener_.get(), EPOLLIN,
                      listener_id) ||
        !epoll_update(made.epoll_.get(), EPOLL_CTL_ADD, made.timer_.fd(), EPOLLIN, timer_id)) {
        return system_error("waiting for connections", errno);
    }
    return made;
}

void pending_connections::stop_listening() { listener_.reset(); }

std::vector<pending_connections::proven_connection> pending_connections::advance() {
    std::array<epoll_event, 64> events{};
    int const count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    bool is_timer_over = false;
    for (int i = 0; i < count; ++i) {
        std::uint64_t const id = events[static_cast<std::size_t>(i)].data.u64;
        if (id == listener_id) {
            accept_some();
        } else if (id == timer_id) {
            is_timer_over = true;
        } else {
            advance_entry(id);
        }
    }
    if (is_timer_over) {
        timer_.clear();
        close_expired(clock::now());
    }
    arm_timer();
    return std::exchange(proven_, {});
}

void pending_connections::accept_some() {
    bool is_queue_empty = false;
    for (int i = 0; i < max_accepts_per_call && !is_queue_empty; ++i) {
        if (unique_fd next = accept_one(is_queue_empty); next.valid()) {
            add(std::move(next));
        }
    }
}

/// Invalid: there is none (then `is_queue_empty`), or this one could not be accepted.
unique_fd pending_connections::accept_one(bool &is_queue_empty) {
    unique_fd next(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (next.valid()) {
        return next;
    }
    int const code = errno;
    if (!is_out_of_descriptors(code)) {
        is_queue_empty = !is_about_one_connection(code);
        return {};
    }
    if (!close_oldest()) {
        // The connection would keep the listener readable for ever, and the caller busy.
        spare_.reset();
        unique_fd refused(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        is_queue_empty = !refused.valid();
        refused.reset();
        spare_ = open_spare();
    }
    reports_.add("no descriptor is left for another connection: raise the limit (ulimit -n)");
    return {};
}

void pending_connections::add(unique_fd socket) {
    int const on = 1;
    // The messages of a handshake are small, and each waits for the previous one.
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    std::uint64_t const id = next_id_++;
    if (!epoll_update(epoll_.get(), EPOLL_CTL_ADD, socket.get(), EPOLLIN, id)) {
        return;
    }
    silent_.emplace(id, entry{std::move(socket), make_(), clock::now()});
    advance_entry(id);
    evict_oldest();
}

void pending_connections::advance_entry(std::uint64_t id) {
    table *from = &silent_;
    auto found = silent_.find(id);
    if (found == silent_.end()) {
        from = &plausible_;
        found = plausible_.find(id);
        if (found == plausible_.end()) {
            return; // an earlier event has ended it
        }
    }
    entry &which = found->second;
    if (exchange_messages(which) == outcome::over) {
        from->erase(found);
    } else if (from == &silent_ && which.exchange.has_plausible_peer()) {
        plausible_.insert(silent_.extract(found));
        evict_oldest();
    }
}

pending_connections::outcome pending_connections::exchange_messages(entry &which) {
    std::array<unsigned char, handshake::hello_bytes> buffer{};
    while (which.exchange.condition() == handshake::state::running) {
        // Read no more than the handshake needs: the following bytes belong to the connection's
        // owner.
        ssize_t const got =
            ::recv(which.socket.get(), buffer.data(), which.exchange.num_missing(), MSG_DONTWAIT);
        if (got <= 0) {
            bool const waits = got < 0 && (errno == EAGAIN || errno == EINTR);
            return waits ? outcome::waits : outcome::over;
        }
        which.exchange.receive(std::span(buffer).first(static_cast<std::size_t>(got)));
        auto const response = which.exchange.output();
        ssize_t const sent = response.empty()
                                 ? 0
                                 : ::send(which.socket.get(), response.data(), response.size(),
                                          MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent != static_cast<ssize_t>(response.size())) {
            return outcome::over; // a new connection has space for so few bytes
        }
        which.exchange.discard_output(response.size());
    }
    if (which.exchange.condition() == handshake::state::done) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, which.socket.get(), nullptr);
        proven_.push_back({std::move(which.socket), which.exchange.take_session_keys()});
    } else {
        reports_.add(which.socket.get(), which.exchange.describe_failure());
    }
    return outcome::over;
}

void pending_connections::evict_oldest() {
    for (auto [full, max_entries] : {std::pair(&silent_, options_.max_silent),
                                     std::pair(&plausible_, options_.max_plausible)}) {
        while (full->size() > max_entries) {
            reports_.add(full->begin()->second.socket.get(),
                         "too many unauthenticated connections at once, the "
                         "oldest is closed; a firewall can keep them away");
            full->erase(full->begin());
        }
    }
}

bool pending_connections::close_oldest() {
    table &from = silent_.empty() ? plausible_ : silent_;
    if (from.empty()) {
        return false;
    }
    from.erase(from.begin());
    return true;
}

void pending_connections::close_expired(clock::time_point now) {
    for (table *const each : {&silent_, &plausible_}) {
        std::erase_if(*each, [&](auto const &item) {
            return now - item.second.accepted >= options_.time_limit;
        });
    }
}

void pending_connections::arm_timer() {
    clock::time_point oldest = clock::time_point::max();
    for (table const *const each : {&silent_, &plausible_}) {
        if (!each->empty()) {
            oldest = std::min(oldest, each->begin()->second.accepted);
        }
    }
    if (oldest != clock::time_point::max()) { // otherwise the timer may expire once in vain
        timer_.arm(oldest + options_.time_limit);
    }
}

} // namespace diomp::secure
