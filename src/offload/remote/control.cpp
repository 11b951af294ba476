// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/control.h"

#include "base/secure/opening_connections.h"
#include "offload/remote/protocol.h"
#include "offload/remote/socket_bytes.h"

#include <fmt/format.h>

#include <algorithm>
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

constexpr std::int64_t max_wait_ms = 1 << 30;

int poll_for(int socket, short events, double timeout_s) {
    auto const end = clock::now() + std::chrono::duration<double>(timeout_s);
    for (;;) {
        int left_ms = -1;
        if (timeout_s > 0) {
            auto const left =
                std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now());
            left_ms = static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, max_wait_ms));
            if (clock::now() >= end) {
                return 0;
            }
        }
        pollfd entry{socket, events, 0};
        int const ready = ::poll(&entry, 1, left_ms);
        if (ready > 0 || (ready < 0 && errno != EINTR)) {
            return ready;
        }
    }
}

error connection_lost(const char *why) {
    return error(OMPX_ERR_PEER, fmt::format("the connection was closed ({})", why));
}

using outcome = secure::opening_connections::outcome;

/// Waits for the result of the only attempt, which has a time limit.
secure::opening_connections::attempt_result wait_for_attempt(secure::opening_connections &opening) {
    for (;;) {
        poll_for(opening.fd(), POLLIN, 0);
        auto ended = opening.advance();
        if (!ended.empty()) {
            return std::move(ended.front());
        }
    }
}

/// Maximum number of attempts at an address that closes the connection during the handshake: the
/// service does that when it has too many unauthenticated connections.
constexpr int max_closed = 20;

std::string service_at(const std::string &host, int port) {
    return fmt::format("the device service at {}:{}", host, port);
}

error explain_failure(secure::opening_connections::attempt_result &ended, bool is_late,
                      const std::string &host, int port) {
    constexpr const char *same_token = "give client and service the same DIOMP_TOKEN or "
                                       "DIOMP_TOKEN_FILE, and the same version of DiOMP; the log "
                                       "of the service may name another reason";
    switch (ended.how) {
    case outcome::closed:
        return {OMPX_ERR_PEER,
                fmt::format("{} refuses this process, or is another program: {}",
                            service_at(host, port), ended.why),
                same_token};
    case outcome::refused:
        return {OMPX_ERR_PEER, fmt::format("{} is not used: {}", service_at(host, port), ended.why),
                same_token};
    case outcome::unreachable:
    case outcome::proven:
        break;
    }
    if (is_late) {
        return {OMPX_ERR_TIMEOUT, fmt::format("{} does not answer in time", service_at(host, port)),
                "check that diomp-deviced listens there"};
    }
    return {OMPX_ERR_PEER,
            fmt::format("cannot connect to port {} of host {}: {}", port, host, ended.why)};
}

/// Starts a non-blocking connect to one address.
result<unique_fd> start_connecting(const addrinfo &to, const std::string &host, int port) {
    unique_fd socket(::socket(to.ai_family, to.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid() ||
        (::connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0 && errno != EINPROGRESS)) {
        return error(OMPX_ERR_PEER, fmt::format("cannot connect to port {} of host {}: {}", port,
                                                host, ::strerrordesc_np(errno)));
    }
    set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    return socket;
}

} // namespace

secure::handshake_options handshake_options_for(const secure::party &self) {
    return {.why = secure::purpose::device_service,
            .self = self,
            .version = protocol_version,
            .wanted = secure::protection::sealed};
}

control_connection::control_connection(unique_fd socket, secure::session_keys proven)
    : socket_(std::move(socket)), peer_(proven.peer), encoder_(std::move(proven.sending)),
      receiving_(std::move(proven.receiving)) {
    int const fd = socket_.get();
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, silence_timeout_s / 4);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, silence_timeout_s / 4);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, silence_timeout_s * 1000);
}

control_connection::control_connection(control_connection &&other) noexcept
    : socket_(std::move(other.socket_)), peer_(other.peer_), encoder_(std::move(other.encoder_)),
      count_(other.count_), counted_from_(other.counted_from_),
      receiving_(std::move(other.receiving_)) {}

result<control_connection> control_connection::connect(const std::string &host, int port,
                                                       const secure::secret &token,
                                                       std::uint32_t device, double timeout_s) {
    address_list found;
    DIOMP_TRY(look_up(host, port, false, found));
    auto opening = secure::opening_connections::create();
    DIOMP_TRY(opening);
    error failure(OMPX_ERR_ARG, fmt::format("host '{}' has no address", host));
    for (addrinfo const *each = found.first; each != nullptr; each = each->ai_next) {
        auto const end = clock::now() + std::chrono::duration_cast<clock::duration>(
                                            std::chrono::duration<double>(timeout_s));
        for (int num_closed = 0; num_closed < max_closed; ++num_closed) {
            auto started = start_connecting(*each, host, port);
            if (!started) {
                failure = started.take_failure();
                break;
            }
            opening.value().add(
                0, started.take(),
                secure::handshake::initiate(token, handshake_options_for(client_party(device)),
                                            service_party),
                end - clock::now());
            auto ended = wait_for_attempt(opening.value());
            if (ended.how == outcome::proven) {
                return control_connection(std::move(ended.socket), std::move(*ended.proven));
            }
            failure = explain_failure(ended, clock::now() >= end, host, port);
            if (ended.how != outcome::closed || clock::now() >= end) {
                break;
            }
        }
    }
    return failure;
}

void control_connection::share_count(frame_count &shared) {
    count_ = &shared;
    counted_from_ = bytes_written(socket_.get()).value_or(0);
    shared.begun_bytes.store(0);
    shared.complete_bytes.store(0);
    shared.begun.store(encoder_.num_frames());
    shared.complete.store(encoder_.num_frames());
}

std::optional<std::uint64_t> control_connection::next_frame() const {
    // Code of a client runs in the session and may have written any value.
    std::uint64_t const begun = count_->begun.load();
    std::uint64_t const complete = count_->complete.load();
    if (complete < encoder_.num_frames() || complete > begun || begun > secure::max_frames) {
        return std::nullopt;
    }
    if (begun == complete) {
        return begun;
    }
    // The process was killed before it had counted the frame: after it had sent it, or before.
    auto const written = bytes_written(socket_.get());
    if (begun > complete + 1 || !written) {
        return std::nullopt;
    }
    std::uint64_t const counted = *written - counted_from_;
    return counted == count_->complete_bytes.load() ? std::optional(complete)
           : counted == count_->begun_bytes.load()  ? std::optional(begun)
                                                    : std::nullopt;
}

status control_connection::take_over() {
    std::lock_guard const guard(send_mutex_);
    auto const next = next_frame();
    if (!next) {
        shut_down();
        return connection_lost("the session ended while it was sending");
    }
    encoder_.skip_to(*next);
    return {};
}

status control_connection::send(std::string_view packet) {
    std::lock_guard const guard(send_mutex_);
    std::string bytes;
    if (count_ == nullptr) {
        encoder_.append(bytes, packet);
        return send_bytes(bytes);
    }
    count_->begun.store(encoder_.num_frames() + 1);
    encoder_.append(bytes, packet);
    std::uint64_t const end = count_->complete_bytes.load() + bytes.size();
    count_->begun_bytes.store(end);
    DIOMP_TRY(send_bytes(bytes));
    count_->complete_bytes.store(end);
    count_->complete.store(encoder_.num_frames());
    return {};
}

status control_connection::send_bytes(std::string_view bytes) const {
    while (!bytes.empty()) {
        ssize_t const sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno != EINTR) {
            int const code = errno;
            if (code == EAGAIN) {
                shut_down(); // nothing can follow half a frame
            }
            return connection_lost(::strerrordesc_np(code));
        }
    }
    return {};
}

status control_connection::read_fully(char *into, std::size_t nbytes, double timeout_s) const {
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
            return connection_lost(got == 0 ? "closed by the peer" : ::strerrordesc_np(errno));
        }
        into += got;
        nbytes -= static_cast<std::size_t>(got);
    }
    return {};
}

/// Grows the buffer with the received bytes, not to the length that a header claims.
status control_connection::read_growing(std::string &into, std::size_t nbytes,
                                        double timeout_s) const {
    constexpr std::size_t first_bytes = 65536;
    while (into.size() < nbytes) {
        std::size_t const before = into.size();
        into.resize(std::min(nbytes, std::max(first_bytes, 4 * before)));
        DIOMP_TRY(read_fully(into.data() + before, into.size() - before, timeout_s));
    }
    return {};
}

result<std::string> control_connection::receive(double timeout_s) {
    unsigned char header[secure::frame_header_bytes];
    DIOMP_TRY(read_fully(reinterpret_cast<char *>(header), sizeof header, timeout_s));
    std::size_t const length = secure::read_frame_length(header);
    if (length == 0 || length > max_frame_bytes) {
        shut_down();
        return error(OMPX_ERR_ARG, fmt::format("received a frame of {} bytes; the limit is {}",
                                               length, max_frame_bytes));
    }
    std::string packet;
    DIOMP_TRY(read_growing(packet, length + secure::frame_cipher::tag_bytes, timeout_s));
    auto *const bytes = reinterpret_cast<unsigned char *>(packet.data());
    if (!receiving_.open(header, {bytes, packet.size()}, bytes)) {
        shut_down();
        return error(OMPX_ERR_ARG, "a frame was changed in transit, or not sealed by the peer");
    }
    packet.resize(length);
    return packet;
}

void control_connection::set_send_timeout(std::chrono::milliseconds timeout) const {
    timeval const limit{timeout.count() / 1000, timeout.count() % 1000 * 1000};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void control_connection::shut_down() const { ::shutdown(socket_.get(), SHUT_RDWR); }

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
            ::listen(socket.get(), SOMAXCONN) == 0) {
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
