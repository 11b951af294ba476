// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/net_access.h"

#include "base/log.h"
#include "launch/same_node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>

namespace diomp::transport::ucx {
namespace {

/// Keys at the launcher: the addresses of a host, of its first rank (empty: of other ranks), and
/// those of all hosts, of rank 0, which spares ranks to read all others' values.
constexpr const char *host_key = "ucx.host";
constexpr const char *hosts_key = "ucx.hosts";

/// "NODE NETWORK ADDRESS..."
std::string describe_host(const host_identity &self, std::span<const network_interface> own) {
    std::string text = fmt::format("{} {}", self.node, self.network);
    for (network_interface const &each : own) {
        for (address const &next : each.addresses) {
            if (!next.is_loopback()) {
                text += ' ' + to_text(next.number);
            }
        }
    }
    return text;
}

/// On rank 0. One line for each host.
result<std::string> gather_hosts(launch::launcher &launcher) {
    std::set<std::string> hosts;
    for (int rank = 0; rank < launcher.info().size; ++rank) {
        auto text = launcher.get(world_rank(rank), host_key);
        DIOMP_TRY(text);
        if (!text.value().empty()) {
            hosts.insert(text.take());
        }
    }
    return fmt::format("{}", fmt::join(hosts, "\n"));
}

/// Describes this host to all others and returns what they say. Collective.
result<std::string> share_hosts(launch::launcher &launcher, const host_identity &self,
                                std::span<const network_interface> own) {
    bool const is_first = launcher.info().local == local_rank(0);
    DIOMP_TRY(launcher.put(host_key, is_first ? describe_host(self, own) : ""));
    DIOMP_TRY(launcher.fence());
    if (launcher.info().rank == world_rank(0)) {
        auto hosts = gather_hosts(launcher);
        DIOMP_TRY(hosts);
        DIOMP_TRY(launcher.put(hosts_key, hosts.value()));
    }
    DIOMP_TRY(launcher.fence());
    return launcher.get(world_rank(0), hosts_key);
}

/// The hosts of that text except this one.
host_list parse_others(const std::string &text, const host_identity &self) {
    host_list others;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        host_identity which;
        words >> which.node >> which.network;
        if (which.shares_interfaces_with(self)) {
            continue;
        }
        std::vector<in6_addr> &host = others.emplace_back();
        for (std::string word; words >> word;) {
            if (auto const number = parse_number(word)) {
                host.push_back(*number);
            }
        }
    }
    return others;
}

bool is_of_any(const host_list &hosts, const address &which) {
    return std::ranges::any_of(hosts, [&](auto const &host) {
        return std::ranges::any_of(host, [&](auto &each) { return which.has_number(each); });
    });
}

bool is_in_network(const network_interface &own, const std::vector<in6_addr> &host) {
    return std::ranges::any_of(own.addresses, [&](const address &ours) {
        return std::ranges::any_of(host,
                                   [&](auto &each) { return ours.shares_network_with(each); });
    });
}

} // namespace

std::vector<std::string> interfaces_towards(const host_list &others,
                                            std::span<const network_interface> own) {
    std::vector<const network_interface *> candidates;
    bool const is_loopback_enough = others.empty();
    for (network_interface const &each : own) {
        bool const is_distinct = std::ranges::any_of(
            each.addresses, [&](const address &ours) { return !is_of_any(others, ours); });
        if (each.is_up && each.is_loopback == is_loopback_enough && is_distinct) {
            candidates.push_back(&each);
        }
    }
    auto const leads_directly = [&](const network_interface *each) {
        return std::ranges::any_of(others,
                                   [&](auto const &host) { return is_in_network(*each, host); });
    };
    bool const are_all_direct = std::ranges::all_of(others, [&](auto const &host) {
        return std::ranges::any_of(candidates,
                                   [&](auto *each) { return is_in_network(*each, host); });
    });
    std::vector<std::string> names;
    for (const network_interface *const each : candidates) {
        if (is_loopback_enough || !are_all_direct || leads_directly(each)) {
            names.push_back(each->name);
        }
    }
    return names;
}

std::vector<std::string> rdma_ports(const std::string &root) {
    namespace fs = std::filesystem;
    std::vector<std::string> names;
    std::error_code ignored;
    for (auto const &adapter : fs::directory_iterator(root + "/sys/class/infiniband", ignored)) {
        for (auto const &port : fs::directory_iterator(adapter.path() / "ports", ignored)) {
            names.push_back(adapter.path().filename().string() + ":" +
                            port.path().filename().string());
        }
    }
    std::ranges::sort(names);
    return names;
}

result<net_access> net_access::create(launch::launcher &launcher) {
    auto own = own_interfaces();
    DIOMP_TRY(own);
    net_access made;
    for (network_interface const &each : own.value()) {
        for (address const &next : each.addresses) {
            made.sources_.push_back(next.number);
        }
    }
    host_list others;
    if (!launcher.info().is_on_one_machine()) {
        host_identity const self = identify_host(own.value());
        auto text = share_hosts(launcher, self, own.value());
        DIOMP_TRY(text);
        others = parse_others(text.value(), self);
    }
    for (auto const &host : others) {
        made.sources_.insert(made.sources_.end(), host.begin(), host.end());
    }
    auto names = interfaces_towards(others, own.value());
    if (!names.empty()) {
        auto const adapters = rdma_ports();
        names.insert(names.end(), adapters.begin(), adapters.end());
        made.devices_ = fmt::format("{}", fmt::join(names, ","));
    }
    return made;
}

} // namespace diomp::transport::ucx
