// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/gaspi/addresses.h"

#include "launch/same_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sstream>

namespace diomp::launch::gaspi {
namespace {

std::uint32_t ipv4_in(const sockaddr *address) {
    return ntohl(reinterpret_cast<const sockaddr_in *>(address)->sin_addr.s_addr);
}

std::string to_text(std::uint32_t address) {
    return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255,
                       address & 255);
}

/// True if `a` reaches `b` without a router.
bool on_same_network(const host_interface &a, const host_interface &b) {
    return a.mask == b.mask && (a.address & a.mask) == (b.address & b.mask);
}

std::string choose(const host_addresses &host, const host_addresses &first) {
    constexpr const char *loopback = "127.0.0.1";
    for (host_interface const &theirs : first.addresses) {
        auto const found = std::ranges::find_if(
            host.addresses, [&](const auto &ours) { return on_same_network(ours, theirs); });
        if (found != host.addresses.end()) {
            return to_text(found->address);
        }
    }
    return host.addresses.empty() ? loopback : to_text(host.addresses.front().address);
}

} // namespace

host_addresses own_addresses() {
    host_addresses host{node_identity(), {}};
    ifaddrs *all = nullptr;
    if (::getifaddrs(&all) != 0) {
        return host;
    }
    for (const ifaddrs *each = all; each != nullptr; each = each->ifa_next) {
        constexpr unsigned wanted = IFF_UP | IFF_RUNNING;
        if (each->ifa_addr != nullptr && each->ifa_netmask != nullptr &&
            each->ifa_addr->sa_family == AF_INET &&
            (each->ifa_flags & (wanted | IFF_LOOPBACK)) == wanted) {
            host.addresses.push_back({ipv4_in(each->ifa_addr), ipv4_in(each->ifa_netmask)});
        }
    }
    ::freeifaddrs(all);
    return host;
}

std::string encode_addresses(const host_addresses &host) {
    std::string text = host.node;
    for (host_interface const &each : host.addresses) {
        text += fmt::format(" {} {}", each.address, each.mask);
    }
    return text;
}

host_addresses decode_addresses(const std::string &text) {
    std::istringstream words(text);
    host_addresses host;
    words >> host.node;
    host_interface each;
    while (words >> each.address >> each.mask) {
        host.addresses.push_back(each);
    }
    return host;
}

std::vector<std::string> choose_addresses(const std::vector<host_addresses> &hosts) {
    bool const is_one_host =
        std::ranges::all_of(hosts, [&](const auto &each) { return each.node == hosts[0].node; });
    std::vector<std::string> chosen;
    chosen.reserve(hosts.size());
    for (host_addresses const &each : hosts) {
        chosen.push_back(is_one_host ? "127.0.0.1" : choose(each, hosts[0]));
    }
    return chosen;
}

} // namespace diomp::launch::gaspi
