// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>
#include <sys/socket.h>

namespace diomp::transport::tcp {
namespace {

/// False: the address means this host itself, as loopback does, or as that of a container bridge
/// which every host has.
bool is_remote_address(const address &theirs, const address_blob &here,
                       std::span<const in6_addr> local) {
    auto const is_same = [&](const in6_addr &ours) {
        return IN6_ARE_ADDR_EQUAL(&ours, &theirs.number) != 0;
    };
    return !theirs.is_loopback() && std::ranges::none_of(local, is_same) &&
           std::ranges::none_of(here.addresses, is_same, &address::number);
}

/// A socket address as the system's calls take it.
struct endpoint {
    sockaddr_storage storage{};
    socklen_t size = 0;
    [[nodiscard]] const sockaddr *get() const {
        return reinterpret_cast<const sockaddr *>(&storage);
    }
};

endpoint make_endpoint(const in6_addr &number, std::uint16_t port) {
    endpoint made;
    if (IN6_IS_ADDR_V4MAPPED(&number) != 0) { // for hosts without IPv6
        auto &ipv4 = reinterpret_cast<sockaddr_in &>(made.storage);
        ipv4.sin_family = AF_INET;
        ipv4.sin_port = htons(port);
        std::memcpy(&ipv4.sin_addr.s_addr, number.s6_addr + 12, 4);
        made.size = sizeof(ipv4);
    } else {
        auto &ipv6 = reinterpret_cast<sockaddr_in6 &>(made.storage);
        ipv6.sin6_family = AF_INET6;
        ipv6.sin6_port = htons(port);
        ipv6.sin6_addr = number;
        made.size = sizeof(ipv6);
    }
    return made;
}

unique_fd new_socket(int family) {
    return unique_fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

result<unique_fd> listen_at(const endpoint &where, std::uint16_t &port, const tuning &how) {
    unique_fd made = new_socket(where.get()->sa_family);
    how.prepare(made.get());
    int const off = 0;
    if (where.get()->sa_family == AF_INET6 && made.valid()) {
        ::setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    endpoint bound;
    bound.size = sizeof(bound.storage);
    if (!made.valid() || ::bind(made.get(), where.get(), where.size) != 0 ||
        ::listen(made.get(), SOMAXCONN) != 0 ||
        ::getsockname(made.get(), reinterpret_cast<sockaddr *>(&bound.storage), &bound.size) != 0) {
        return system_error("listening for other ranks", errno);
    }
    port = ntohs(bound.storage.ss_family == AF_INET6
                     ? reinterpret_cast<const sockaddr_in6 &>(bound.storage).sin6_port
                     : reinterpret_cast<const sockaddr_in &>(bound.storage).sin_port);
    return made;
}

} // namespace

result<std::vector<address>> own_addresses(std::span<const network_interface> own,
                                           const std::string &wanted) {
    std::set<std::string> missing;
    std::istringstream names(wanted);
    for (std::string name; std::getline(names, name, ',');) {
        missing.insert(name);
    }
    std::set<std::string> const named = missing;
    std::vector<address> found;
    for (network_interface const &each : own) {
        missing.erase(each.name);
        bool const is_wanted =
            named.empty() ? each.is_up && !each.is_loopback : named.contains(each.name);
        if (is_wanted) {
            found.insert(found.end(), each.addresses.begin(), each.addresses.end());
        }
    }
    if (!missing.empty()) {
        return error(OMPX_ERR_ARG, fmt::format("this host has no interface '{}'", *missing.begin()),
                     "set DIOMP_TCP_INTERFACES to existing interfaces (see ip link)");
    }
    return found;
}

std::vector<in6_addr> all_addresses(std::span<const network_interface> own) {
    std::vector<in6_addr> found;
    for (network_interface const &each : own) {
        for (address const &next : each.addresses) {
            found.push_back(next.number);
        }
    }
    return found;
}

std::string encode_address_blob(const address_blob &from) {
    std::string text = fmt::format("{} {} {}", from.host.node, from.host.network, from.port);
    for (address const &each : from.addresses) {
        text += fmt::format(" {} {}", to_text(each.number), each.prefix_bits);
    }
    return text;
}

address_blob decode_address_blob(const std::string &text) {
    std::istringstream words(text);
    address_blob read;
    words >> read.host.node >> read.host.network >> read.port;
    std::string number;
    address each;
    while (words >> number >> each.prefix_bits) {
        if (auto const parsed = parse_number(number)) {
            each.number = *parsed;
            read.addresses.push_back(each);
        }
    }
    return read;
}

std::vector<in6_addr> candidate_addresses(const address_blob &there, const address_blob &here,
                                          std::span<const in6_addr> local) {
    std::vector<in6_addr> candidates;
    bool const same_interfaces = there.host.shares_interfaces_with(here.host);
    if (same_interfaces) {
        candidates.push_back(map_ipv4({htonl(INADDR_LOOPBACK)}));
    }
    auto const shares_network = [&](const address &theirs) {
        return std::ranges::any_of(here.addresses, [&](const address &ours) {
            return ours.shares_network_with(theirs.number);
        });
    };
    for (bool const same_network : {true, false}) {
        for (address const &each : there.addresses) {
            if (shares_network(each) == same_network &&
                (same_interfaces || is_remote_address(each, here, local))) {
                candidates.push_back(each.number);
            }
        }
    }
    return candidates;
}

std::string peer_address_of(int fd) {
    endpoint other;
    other.size = sizeof(other.storage);
    if (::getpeername(fd, reinterpret_cast<sockaddr *>(&other.storage), &other.size) != 0) {
        return "not connected";
    }
    auto const &ipv4 = reinterpret_cast<const sockaddr_in &>(other.storage);
    return to_text(other.storage.ss_family == AF_INET
                       ? map_ipv4(ipv4.sin_addr)
                       : reinterpret_cast<const sockaddr_in6 &>(other.storage).sin6_addr);
}

result<unique_fd> listen(std::uint16_t &port, const tuning &how, listen_scope from) {
    if (from == listen_scope::loopback) {
        return listen_at(make_endpoint(map_ipv4({htonl(INADDR_LOOPBACK)}), 0), port, how);
    }
    auto made = listen_at(make_endpoint(in6addr_any, 0), port, how);
    if (made.ok()) {
        return made;
    }
    return listen_at(make_endpoint(map_ipv4({htonl(INADDR_ANY)}), 0), port, how);
}

result<unique_fd> start_connecting(const in6_addr &to, std::uint16_t port, const tuning &how) {
    endpoint const where = make_endpoint(to, port);
    unique_fd made = new_socket(where.get()->sa_family);
    if (!made.valid()) {
        return system_error("opening a socket", errno);
    }
    how.prepare(made.get());
    if (::connect(made.get(), where.get(), where.size) != 0 && errno != EINPROGRESS) {
        return system_error("connecting", errno);
    }
    return made;
}

} // namespace diomp::transport::tcp
