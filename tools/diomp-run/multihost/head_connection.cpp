// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "head_connection.h"

#include "base/secure/opening_connections.h"
#include "launch/host.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace diomp::run {
namespace {

using clock = std::chrono::steady_clock;

/// Limit of connections to an address that closes them during the handshake: the head may have had
/// too many unauthenticated connections.
constexpr int max_closed = 20;

struct addrinfo_owner {
    addrinfo *list = nullptr;
    ~addrinfo_owner() {
        if (list != nullptr) {
            freeaddrinfo(list);
        }
    }
};

/// Connection attempts to all addresses of the head.
class connection_attempts {
public:
    connection_attempts(const agent_bootstrap &bootstrap, const secure::secret &key,
                        secure::opening_connections &opening)
        : bootstrap_(bootstrap), key_(key), opening_(opening),
          num_closed_(bootstrap.addresses.size()),
          deadline_(clock::now() + std::chrono::duration_cast<clock::duration>(
                                       std::chrono::duration<double>(bootstrap.timeout_s))) {
        for (std::size_t i = 0; i < bootstrap.addresses.size(); ++i) {
            start(i);
        }
    }

    /// Returns the authenticated connection to the head, if there is one. Blocks.
    std::optional<head_connection> wait();
    [[nodiscard]] const std::string &failures() const { return failures_; }

private:
    void start(std::size_t index);
    void add_failure(std::size_t index, const std::string &why) {
        auto const &[address, port] = bootstrap_.addresses[index];
        failures_ += fmt::format("; {} port {}: {}", address, port, why);
    }
    [[nodiscard]] bool should_retry(const secure::opening_connections::attempt_result &ended);

    const agent_bootstrap &bootstrap_;
    const secure::secret &key_;
    secure::opening_connections &opening_;
    std::vector<int> num_closed_; ///< [address]
    clock::time_point deadline_;
    std::string failures_;
};

void connection_attempts::start(std::size_t index) {
    auto const &[address, port] = bootstrap_.addresses[index];
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo_owner found;
    if (getaddrinfo(address.c_str(), port.c_str(), &hints, &found.list) != 0) {
        return add_failure(index, "not an address");
    }
    unique_fd socket(
        ::socket(found.list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket || (connect(socket.get(), found.list->ai_addr, found.list->ai_addrlen) != 0 &&
                    errno != EINPROGRESS)) {
        return add_failure(index, std::strerror(errno));
    }
    secure::party const self{secure::role::agent, static_cast<std::uint32_t>(bootstrap_.index)};
    opening_.add(index, std::move(socket),
                 secure::handshake::initiate(key_, launch_handshake(self), {secure::role::head, 0}),
                 deadline_ - clock::now());
}

bool connection_attempts::should_retry(const secure::opening_connections::attempt_result &ended) {
    return ended.how == secure::opening_connections::outcome::closed &&
           ++num_closed_[ended.tag] < max_closed && clock::now() < deadline_;
}

std::optional<head_connection> connection_attempts::wait() {
    while (opening_.size() > 0) {
        pollfd entry{opening_.fd(), POLLIN, 0};
        poll(&entry, 1, -1); // each attempt has a time limit of its own
        for (auto &each : opening_.advance()) {
            if (each.proven) {
                return head_connection{std::move(each.socket), std::move(*each.proven)};
            }
            if (should_retry(each)) {
                start(each.tag);
            } else {
                add_failure(each.tag, each.why);
            }
        }
    }
    return std::nullopt;
}

} // namespace

secure::handshake_options launch_handshake(const secure::party &self) {
    return {.why = secure::purpose::multihost_launch,
            .self = self,
            .version = agent_protocol_version,
            .wanted = secure::protection::sealed};
}

result<agent_bootstrap> read_bootstrap() {
    std::string text;
    constexpr std::size_t max_text_bytes = std::size_t{64} * 1024;
    text.reserve(max_text_bytes); // so that no copies of the secret are left behind
    // Byte by byte: data after the end mark must stay unread.
    char c = 0;
    while (text.size() < max_text_bytes && !text.ends_with(bootstrap_end)) {
        ssize_t const size = read(STDIN_FILENO, &c, 1);
        if (size == 1) {
            text += c;
        } else if (size == 0 || errno != EINTR) {
            break;
        }
    }
    auto bootstrap = decode_bootstrap(text);
    secure::erase(text);
    return bootstrap;
}

result<head_connection> connect_to_head(agent_bootstrap &bootstrap) {
    auto key = secure::secret::decode(bootstrap.secret);
    secure::erase(bootstrap.secret);
    if (!key) {
        return error(OMPX_ERR_ARG, "the start-up data on standard input has no secret",
                     "the remote shell must pass its standard input on unchanged");
    }
    auto opening = secure::opening_connections::create();
    DIOMP_TRY(opening);
    connection_attempts all(bootstrap, key.value(), opening.value());
    if (auto found = all.wait()) {
        return std::move(*found);
    }
    return error(OMPX_ERR_SYSTEM,
                 fmt::format("{} cannot reach the host where the job was started{}",
                             launch::host_name(), all.failures()),
                 "let the hosts connect to each other by TCP; --head-address names the address");
}

} // namespace diomp::run
