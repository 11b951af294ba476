// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/listener_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <dirent.h>
#include <linux/filter.h>
#include <memory>
#include <optional>
#include <string_view>
#include <sys/socket.h>

namespace diomp::transport::ucx {
namespace {

using program = std::vector<sock_filter>;

constexpr std::uint32_t all_bytes = ~std::uint32_t{0}; ///< of the packet are let through
/// Offsets of the source address in the headers of IPv4 and IPv6.
constexpr std::uint32_t ipv4_source = 12;
constexpr std::uint32_t ipv6_source = 8;

sock_filter statement(unsigned code, std::uint32_t value) {
    return {static_cast<std::uint16_t>(code), 0, 0, value};
}

sock_filter load_of_header(std::uint32_t offset) {
    return statement(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(SKF_NET_OFF) + offset);
}

/// Continues if the loaded word equals `value`; otherwise skips `distance` instructions.
sock_filter unless_equal_skip(std::uint32_t value, std::size_t distance) {
    return {BPF_JMP | BPF_JEQ | BPF_K, 0, static_cast<std::uint8_t>(distance), value};
}

std::uint32_t word_of(const in6_addr &number, std::size_t index) {
    std::uint32_t word = 0;
    std::memcpy(&word, number.s6_addr + 4 * index, sizeof(word));
    return ntohl(word);
}

program filter_ipv4(std::span<const in6_addr> sources) {
    program made{load_of_header(ipv4_source)};
    for (in6_addr const &each : sources) {
        if (IN6_IS_ADDR_V4MAPPED(&each) != 0) {
            made.push_back(unless_equal_skip(word_of(each, 3), 1));
            made.push_back(statement(BPF_RET | BPF_K, all_bytes));
        }
    }
    made.push_back(statement(BPF_RET | BPF_K, 0));
    return made;
}

program filter_ipv6(std::span<const in6_addr> sources) {
    constexpr std::size_t num_words = 4;
    program made;
    for (in6_addr const &each : sources) {
        if (IN6_IS_ADDR_V4MAPPED(&each) != 0) {
            continue;
        }
        for (std::size_t word = 0; word < num_words; ++word) {
            made.push_back(load_of_header(ipv6_source + static_cast<std::uint32_t>(4 * word)));
            // To the first instruction for the next address.
            made.push_back(unless_equal_skip(word_of(each, word), 2 * (num_words - word) - 1));
        }
        made.push_back(statement(BPF_RET | BPF_K, all_bytes));
    }
    made.push_back(statement(BPF_RET | BPF_K, 0));
    return made;
}

bool is_listening_tcp(int fd) {
    int listens = 0;
    int protocol = 0;
    socklen_t size = sizeof(int);
    return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
           ::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
           protocol == IPPROTO_TCP;
}

struct local_end {
    sa_family_t family;
    in_port_t port; ///< in network order
};

std::optional<local_end> local_end_of(int fd) {
    sockaddr_storage storage{};
    socklen_t size = sizeof(storage);
    if (::getsockname(fd, reinterpret_cast<sockaddr *>(&storage), &size) != 0) {
        return std::nullopt;
    }
    if (storage.ss_family == AF_INET) {
        return local_end{AF_INET, reinterpret_cast<const sockaddr_in &>(storage).sin_port};
    }
    return local_end{AF_INET6, reinterpret_cast<const sockaddr_in6 &>(storage).sin6_port};
}

} // namespace

std::vector<int> listening_sockets() {
    std::vector<int> found;
    std::unique_ptr<DIR, int (*)(DIR *)> const folder(::opendir("/proc/self/fd"), &::closedir);
    if (folder == nullptr) {
        return found;
    }
    while (const dirent *const each = ::readdir(folder.get())) {
        std::string_view const name = each->d_name;
        int fd = -1;
        if (std::from_chars(name.data(), name.data() + name.size(), fd).ec == std::errc() &&
            is_listening_tcp(fd)) {
            found.push_back(fd);
        }
    }
    return found;
}

bool is_port_in(int listener, std::span<const std::byte> worker_address) {
    auto const end = local_end_of(listener);
    if (!end) {
        return false;
    }
    std::array<std::byte, sizeof(end->port)> port{};
    std::memcpy(port.data(), &end->port, sizeof(end->port));
    return !std::ranges::search(worker_address, port).empty();
}

status accept_only(int listener, std::span<const in6_addr> sources) {
    auto const end = local_end_of(listener);
    program filter = end && end->family == AF_INET6 ? filter_ipv6(sources) : filter_ipv4(sources);
    if (filter.size() > BPF_MAXINSNS) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("a socket filter has no space for {} addresses", sources.size()));
    }
    sock_fprog const attached{static_cast<unsigned short>(filter.size()), filter.data()};
    if (::setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &attached, sizeof(attached)) != 0) {
        return system_error("limiting the sources of connections to UCX", errno);
    }
    return {};
}

} // namespace diomp::transport::ucx
