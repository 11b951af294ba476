// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "head_connection.h"

#include "launch/host.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <netdb.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

namespace diomp::run {
namespace {

namespace local = launch::local;

/// One way to the head that is being tried.
struct attempt {
    std::string name; ///< for the message
    unique_fd socket;
    bool connected = false;
    std::string received;
};

struct addrinfo_owner {
    addrinfo *list = nullptr;
    ~addrinfo_owner() {
        if (list != nullptr) {
            freeaddrinfo(list);
        }
    }
};

attempt start_attempt(const std::string &address, const std::string &port, std::string &failures) {
    attempt made;
    made.name = fmt::format("{} port {}", address, port);
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo_owner found;
    if (getaddrinfo(address.c_str(), port.c_str(), &hints, &found.list) != 0) {
        failures += fmt::format("; {}: not an address", made.name);
        return made;
    }
    unique_fd socket(
        ::socket(found.list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket && (connect(socket.get(), found.list->ai_addr, found.list->ai_addrlen) == 0 ||
                   errno == EINPROGRESS)) {
        made.socket = std::move(socket);
    } else {
        failures += fmt::format("; {}: {}", made.name, std::strerror(errno));
    }
    return made;
}

/// The greeting as it must arrive, with its length.
std::string expected_greeting(const agent_invitation &invitation) {
    frame_writer frame(frame_type::greeting);
    frame.number(local::protocol_magic);
    frame.number(agent_protocol_version);
    frame.text(invitation.head_secret);
    std::string const bytes = frame.take();
    auto const length = static_cast<std::uint32_t>(bytes.size());
    return std::string(reinterpret_cast<const char *>(&length), sizeof length) + bytes;
}

/// Reads what has come. True if the head has greeted; a socket that is of no use is closed.
bool advance(attempt &which, const std::string &expected, std::string &failures) {
    int failed = 0;
    if (!which.connected) {
        socklen_t size = sizeof failed;
        getsockopt(which.socket.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
        which.connected = failed == 0;
    }
    if (which.connected) {
        std::array<char, 256> buffer{};
        // Not more than the greeting: what follows is the link's.
        std::size_t const wanted = std::min(buffer.size(), expected.size() - which.received.size());
        ssize_t const size = recv(which.socket.get(), buffer.data(), wanted, MSG_DONTWAIT);
        if (size > 0) {
            which.received.append(buffer.data(), static_cast<std::size_t>(size));
        } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
            failed = size == 0 ? ECONNRESET : errno;
        }
    }
    bool const differs =
        !same_secret(which.received, std::string_view(expected).substr(0, which.received.size()));
    if (failed != 0 || differs) {
        failures += fmt::format("; {}: {}", which.name,
                                differs ? "something else answers" : std::strerror(failed));
        which.socket.reset();
    }
    return failed == 0 && !differs && which.received.size() == expected.size();
}

} // namespace

result<agent_invitation> read_invitation() {
    std::string text;
    constexpr std::size_t longest = std::size_t{64} * 1024;
    // Byte by byte: what follows the end mark is not ours.
    char c = 0;
    while (text.size() < longest && !text.ends_with(invitation_end)) {
        ssize_t const size = read(STDIN_FILENO, &c, 1);
        if (size == 1) {
            text += c;
        } else if (size == 0 || errno != EINTR) {
            break;
        }
    }
    return decode_invitation(text);
}

result<unique_fd> connect_to_head(const agent_invitation &invitation) {
    using clock = std::chrono::steady_clock;
    auto const deadline = clock::now() + std::chrono::duration<double>(invitation.timeout_s);
    std::string const expected = expected_greeting(invitation);
    std::string failures;
    std::vector<attempt> attempts;
    attempts.reserve(invitation.addresses.size());
    for (const auto &[address, port] : invitation.addresses) {
        attempts.push_back(start_attempt(address, port, failures));
    }
    while (clock::now() < deadline) {
        std::vector<pollfd> waiting;
        std::vector<attempt *> owners;
        for (attempt &each : attempts) {
            if (each.socket) {
                short const events = each.connected ? POLLIN : POLLOUT;
                waiting.push_back({each.socket.get(), events, 0});
                owners.push_back(&each);
            }
        }
        if (waiting.empty()) {
            break;
        }
        auto const left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now());
        poll(waiting.data(), waiting.size(), static_cast<int>(left.count()) + 1);
        for (std::size_t i = 0; i < waiting.size(); ++i) {
            if (waiting[i].revents != 0 && advance(*owners[i], expected, failures)) {
                return std::move(owners[i]->socket);
            }
        }
    }
    for (const attempt &each : attempts) {
        if (each.socket) {
            failures += fmt::format("; {}: no answer", each.name);
        }
    }
    return error(OMPX_ERR_SYSTEM,
                 fmt::format("{} cannot reach the host where the job was started{}",
                             launch::host_name(), failures),
                 "let the hosts connect to each other by TCP; --head-address names the address");
}

result<std::string> make_secret(std::size_t size) {
    std::vector<unsigned char> bytes(size);
    if (getrandom(bytes.data(), size, 0) != static_cast<ssize_t>(size)) {
        return system_error("getrandom", errno);
    }
    std::string text;
    for (unsigned char const byte : bytes) {
        text += fmt::format("{:02x}", byte);
    }
    return text;
}

bool same_secret(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) {
        return false;
    }
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ b[i]));
    }
    return difference == 0;
}

} // namespace diomp::run
