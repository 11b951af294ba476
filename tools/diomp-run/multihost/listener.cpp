// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "listener.h"

#include "launch/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace diomp::run {
namespace {

struct interface_address {
    std::string interface;
    std::string numeric;
};

std::string numeric_name(const sockaddr *address, socklen_t size) {
    std::array<char, NI_MAXHOST> text{};
    return getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0
               ? std::string(text.data())
               : std::string();
}

bool link_local(const sockaddr_in6 &address) { return IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr); }

std::vector<interface_address> local_addresses() {
    std::vector<interface_address> found;
    std::vector<interface_address> loopback;
    ifaddrs *list = nullptr;
    if (getifaddrs(&list) != 0) {
        return found;
    }
    for (const ifaddrs *each = list; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) {
            continue;
        }
        int const family = each->ifa_addr->sa_family;
        sockaddr_in6 six{};
        if (family == AF_INET6) {
            std::memcpy(&six, each->ifa_addr, sizeof six);
        }
        if (family == AF_INET || (family == AF_INET6 && !link_local(six))) {
            std::string numeric =
                numeric_name(each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof six);
            if (!numeric.empty()) {
                auto &list_of_kind = (each->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : found;
                list_of_kind.push_back({each->ifa_name, std::move(numeric)});
            }
        }
    }
    freeifaddrs(list);
    found.insert(found.end(), loopback.begin(), loopback.end());
    return found;
}

result<unique_fd> listen_at(int family, const sockaddr *address, socklen_t size) {
    unique_fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
        return system_error("socket", errno);
    }
    int const off = 0;
    if (family == AF_INET6) {
        setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (bind(socket.get(), address, size) != 0) {
        return system_error("cannot use the address " + numeric_name(address, size), errno);
    }
    if (listen(socket.get(), SOMAXCONN) != 0) {
        return system_error("listen", errno);
    }
    return socket;
}

std::string port_of(const unique_fd &socket) {
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    std::array<char, NI_MAXSERV> port{};
    auto *const address = reinterpret_cast<sockaddr *>(&bound);
    getsockname(socket.get(), address, &size);
    getnameinfo(address, size, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV);
    return port.data();
}

result<listener> listen_on_all() {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_addr = in6addr_any;
    auto socket = listen_at(AF_INET6, reinterpret_cast<const sockaddr *>(&six), sizeof six);
    bool const both = socket.ok();
    if (!both) { // the system has no IPv6
        sockaddr_in four{};
        four.sin_family = AF_INET;
        socket = listen_at(AF_INET, reinterpret_cast<const sockaddr *>(&four), sizeof four);
    }
    DIOMP_TRY(socket);
    listener made;
    made.socket = socket.take();
    std::string const port = port_of(made.socket);
    for (const interface_address &each : local_addresses()) {
        if (both || each.numeric.find(':') == std::string::npos) {
            made.addresses.emplace_back(each.numeric, port);
        }
    }
    if (made.addresses.empty()) {
        return error(OMPX_ERR_SYSTEM, "this host has no network address",
                     "bring an interface up, or name an address with --head-address");
    }
    return made;
}

bool is_loopback(const sockaddr *address) {
    if (address->sa_family == AF_INET6) {
        sockaddr_in6 six{};
        std::memcpy(&six, address, sizeof six);
        return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
    }
    sockaddr_in four{};
    std::memcpy(&four, address, sizeof four);
    return (ntohl(four.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
}

} // namespace

bool is_local_name(const std::string &name) {
    return name == "localhost" || name == launch::host_name();
}

resolved_host resolve_host(const std::string &name) {
    resolved_host found;
    found.is_local = is_local_name(name); // also if the name cannot be resolved
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo *list = nullptr;
    if (getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) {
        return found;
    }
    auto const own = local_addresses();
    for (const addrinfo *each = list; each != nullptr; each = each->ai_next) {
        std::string numeric = numeric_name(each->ai_addr, each->ai_addrlen);
        bool const loopback = is_loopback(each->ai_addr);
        // Debian gives a host's own name an address that no interface has, 127.0.1.1.
        found.is_local = found.is_local || loopback ||
                         std::ranges::find(own, numeric, &interface_address::numeric) != own.end();
        if (found.address.empty() && !loopback && numeric.find('%') == std::string::npos) {
            found.address = std::move(numeric);
        }
    }
    freeaddrinfo(list);
    return found;
}

result<listener> open_listener(const std::string &address) {
    if (address.empty()) {
        return listen_on_all();
    }
    std::string name = address;
    for (const interface_address &each : local_addresses()) {
        if (each.interface == address) {
            name = each.numeric;
            break;
        }
    }
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo *found = nullptr;
    if (int const failure = getaddrinfo(name.c_str(), nullptr, &hints, &found); failure != 0) {
        return error(OMPX_ERR_ARG,
                     fmt::format("--head-address {}: {}", address, gai_strerror(failure)),
                     "name an address, a host name or an interface of this machine");
    }
    auto socket = listen_at(found->ai_family, found->ai_addr, found->ai_addrlen);
    std::string numeric = numeric_name(found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (!socket) {
        return error(OMPX_ERR_ARG,
                     fmt::format("--head-address {}: {}", address, socket.failure().message()),
                     "name an address of this machine");
    }
    listener made;
    made.socket = socket.take();
    made.addresses.emplace_back(std::move(numeric), port_of(made.socket));
    return made;
}

} // namespace diomp::run
