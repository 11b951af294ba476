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
bool share_network(const interface_address &a, const interface_address &b) {
    return a.mask == b.mask && (a.address & a.mask) == (b.address & b.mask);
}

std::string choose(const host_card &card, const host_card &first) {
    constexpr const char *loopback = "127.0.0.1";
    for (interface_address const &theirs : first.addresses) {
        auto const found = std::ranges::find_if(
            card.addresses, [&](const auto &ours) { return share_network(ours, theirs); });
        if (found != card.addresses.end()) {
            return to_text(found->address);
        }
    }
    return card.addresses.empty() ? loopback : to_text(card.addresses.front().address);
}

} // namespace

host_card own_card() {
    host_card card{node_identity(), {}};
    ifaddrs *all = nullptr;
    if (::getifaddrs(&all) != 0) {
        return card;
    }
    for (const ifaddrs *each = all; each != nullptr; each = each->ifa_next) {
        constexpr unsigned wanted = IFF_UP | IFF_RUNNING;
        if (each->ifa_addr != nullptr && each->ifa_netmask != nullptr &&
            each->ifa_addr->sa_family == AF_INET &&
            (each->ifa_flags & (wanted | IFF_LOOPBACK)) == wanted) {
            card.addresses.push_back({ipv4_in(each->ifa_addr), ipv4_in(each->ifa_netmask)});
        }
    }
    ::freeifaddrs(all);
    return card;
}

std::string write_card(const host_card &card) {
    std::string text = card.node;
    for (interface_address const &each : card.addresses) {
        text += fmt::format(" {} {}", each.address, each.mask);
    }
    return text;
}

host_card read_card(const std::string &text) {
    std::istringstream words(text);
    host_card card;
    words >> card.node;
    interface_address each;
    while (words >> each.address >> each.mask) {
        card.addresses.push_back(each);
    }
    return card;
}

std::vector<std::string> choose_addresses(const std::vector<host_card> &cards) {
    bool const is_one_host =
        std::ranges::all_of(cards, [&](const auto &each) { return each.node == cards[0].node; });
    std::vector<std::string> chosen;
    chosen.reserve(cards.size());
    for (host_card const &each : cards) {
        chosen.push_back(is_one_host ? "127.0.0.1" : choose(each, cards[0]));
    }
    return chosen;
}

} // namespace diomp::launch::gaspi
