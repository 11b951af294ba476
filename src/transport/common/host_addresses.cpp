// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define XXH_INLINE_ALL
#include "transport/common/host_addresses.h"

#include "launch/same_node.h"
#include "transport/registration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <arpa/inet.h>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sys/stat.h>
#include <xxhash.h>

namespace diomp::transport {
namespace {

constexpr int mapped_bits = 96; ///< prefix of an IPv4 address mapped into IPv6

int count_bits(const unsigned char *bytes, int nbytes) {
    int bits = 0;
    for (int i = 0; i < nbytes; ++i) {
        bits += std::popcount(bytes[i]);
    }
    return bits;
}

/// False: the address is of no use to other hosts.
bool read_address(const ifaddrs &from, address &into) {
    if (from.ifa_addr == nullptr || from.ifa_netmask == nullptr) {
        return false;
    }
    if (from.ifa_addr->sa_family == AF_INET) {
        into.number = map_ipv4(reinterpret_cast<const sockaddr_in *>(from.ifa_addr)->sin_addr);
        in_addr const mask = reinterpret_cast<const sockaddr_in *>(from.ifa_netmask)->sin_addr;
        into.prefix_bits =
            mapped_bits + count_bits(reinterpret_cast<const unsigned char *>(&mask), 4);
        return true;
    }
    if (from.ifa_addr->sa_family == AF_INET6) {
        into.number = reinterpret_cast<const sockaddr_in6 *>(from.ifa_addr)->sin6_addr;
        auto const &mask = reinterpret_cast<const sockaddr_in6 *>(from.ifa_netmask)->sin6_addr;
        into.prefix_bits = count_bits(mask.s6_addr, 16);
        return IN6_IS_ADDR_LINKLOCAL(&into.number) == 0; // useless without an interface
    }
    return false;
}

std::string read_hardware_address(const sockaddr &from) {
    auto const &link = reinterpret_cast<const sockaddr_ll &>(from);
    auto const nbytes = std::min<std::size_t>(link.sll_halen, sizeof(link.sll_addr));
    return {reinterpret_cast<const char *>(link.sll_addr), nbytes};
}

std::string identify_network(std::span<const network_interface> own) {
    struct stat network{};
    if (::stat("/proc/self/ns/net", &network) != 0) {
        return unknown_network;
    }
    std::vector<std::string> described;
    for (network_interface const &each : own) {
        if (each.is_loopback || each.addresses.empty()) {
            continue; // those of containers that come and go have no addresses
        }
        std::string text = fmt::format("{}={:02x}", each.name,
                                       fmt::join(std::span(reinterpret_cast<const unsigned char *>(
                                                               each.hardware_address.data()),
                                                           each.hardware_address.size()),
                                                 ""));
        for (address const &next : each.addresses) {
            text += '=' + to_text(next.number);
        }
        described.push_back(std::move(text));
    }
    std::ranges::sort(described);
    if (described.empty()) {
        return unknown_network;
    }
    std::string const all = fmt::format("{} {}", network.st_ino, fmt::join(described, " "));
    return fmt::format("{:016x}", XXH3_64bits(all.data(), all.size()));
}

} // namespace

bool address::is_loopback() const {
    in_addr ipv4{};
    std::memcpy(&ipv4.s_addr, number.s6_addr + 12, 4);
    return is_ipv4() ? (ntohl(ipv4.s_addr) >> 24) == IN_LOOPBACKNET
                     : IN6_IS_ADDR_LOOPBACK(&number) != 0;
}

bool address::shares_network_with(const in6_addr &other) const {
    if (is_ipv4() != (IN6_IS_ADDR_V4MAPPED(&other) != 0)) {
        return false;
    }
    for (int bit = 0; bit < prefix_bits; ++bit) {
        int const mask = 0x80 >> (bit % 8);
        if (((number.s6_addr[bit / 8] ^ other.s6_addr[bit / 8]) & mask) != 0) {
            return false;
        }
    }
    return true;
}

result<std::vector<network_interface>> own_interfaces() {
    ifaddrs *all = nullptr;
    if (::getifaddrs(&all) != 0) {
        return system_error("reading the addresses of this host", errno);
    }
    std::vector<network_interface> found;
    for (const ifaddrs *each = all; each != nullptr; each = each->ifa_next) {
        auto known = std::ranges::find(found, each->ifa_name, &network_interface::name);
        if (known == found.end()) {
            constexpr unsigned up = IFF_UP | IFF_RUNNING;
            found.push_back({.name = each->ifa_name,
                             .is_up = (each->ifa_flags & up) == up,
                             .is_loopback = (each->ifa_flags & IFF_LOOPBACK) != 0,
                             .hardware_address = {},
                             .addresses = {}});
            known = found.end() - 1;
        }
        if (each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_PACKET) {
            known->hardware_address = read_hardware_address(*each->ifa_addr);
        }
        if (address next; read_address(*each, next)) {
            known->addresses.push_back(next);
        }
    }
    ::freeifaddrs(all);
    return found;
}

bool host_identity::shares_interfaces_with(const host_identity &other) const {
    return node == other.node || (network != unknown_network && network == other.network);
}

host_identity identify_host(std::span<const network_interface> own) {
    return {.node = launch::node_identity(), .network = identify_network(own)};
}

host_identity identify_this_host() {
    auto const own = own_interfaces();
    return own ? identify_host(own.value()) : host_identity{.node = launch::node_identity()};
}

in6_addr map_ipv4(in_addr from) {
    in6_addr mapped{};
    mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
    std::memcpy(mapped.s6_addr + 12, &from.s_addr, 4);
    return mapped;
}

std::string to_text(const in6_addr &number) {
    char text[INET6_ADDRSTRLEN] = {};
    if (IN6_IS_ADDR_V4MAPPED(&number) != 0) {
        ::inet_ntop(AF_INET, number.s6_addr + 12, text, sizeof(text));
    } else {
        ::inet_ntop(AF_INET6, &number, text, sizeof(text));
    }
    return text;
}

std::optional<in6_addr> parse_number(std::string_view text) {
    std::string const number(text);
    in6_addr ipv6{};
    if (::inet_pton(AF_INET6, number.c_str(), &ipv6) == 1) {
        return ipv6;
    }
    in_addr ipv4{};
    if (::inet_pton(AF_INET, number.c_str(), &ipv4) == 1) {
        return map_ipv4(ipv4);
    }
    return std::nullopt;
}

} // namespace diomp::transport
