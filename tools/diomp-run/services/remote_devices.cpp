// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "remote_devices.h"

#include "multihost/host_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace diomp::run {
namespace {

constexpr int max_devices = 4096; // per service

constexpr std::array<std::string_view, 4> kinds{"cpu", "cuda", "amdgpu", "host"};

/// Parses the text after the host: "", ":2", ":cpu" or ":cpu:2". Returns false if malformed.
bool parse_devices(std::string_view text, device_host &into) {
    for (std::string_view const kind : kinds) {
        if (text.starts_with(':') && text.substr(1, text.find(':', 1) - 1) == kind) {
            into.kind = kind;
            text.remove_prefix(1 + kind.size());
            break;
        }
    }
    if (text.empty()) {
        into.devices = into.kind == "cpu" ? 1 : 0;
        return true;
    }
    auto const parsed = std::from_chars(text.begin() + 1, text.end(), into.devices);
    return text.front() == ':' && parsed.ec == std::errc() && parsed.ptr == text.end() &&
           into.devices >= 1 && into.devices <= max_devices;
}

error too_few_devices(long devices, int ranks) {
    return {OMPX_ERR_ARG,
            fmt::format("--remote-devices: {} device{} for {} ranks", devices,
                        devices == 1 ? "" : "s", ranks),
            "ask for a device for each rank at least"};
}

bool is_same_service(const device_host &one, const device_host &other) {
    return one.name == other.name && one.kind == other.kind;
}

/// Devices of one service that follow each other.
struct adjacent_devices {
    const device_service *of = nullptr;
    long first = 0;
    long count = 0;
};

result<std::vector<adjacent_devices>>
devices_in_order(const std::vector<device_host> &hosts,
                 const std::vector<device_service> &services) {
    std::vector<device_host> const of_services = services_for(hosts);
    std::vector<long> left_over; // [service] devices that entries for all of them have
    for (std::size_t i = 0; i < of_services.size(); ++i) {
        long named = 0;
        for (const device_host &host : hosts) {
            named += is_same_service(host, of_services[i]) ? host.devices : 0;
        }
        if (named > services[i].devices) {
            return error(OMPX_ERR_ARG,
                         fmt::format("host {} has {} {} device{}, {} are requested",
                                     of_services[i].name, services[i].devices, of_services[i].kind,
                                     services[i].devices == 1 ? "" : "s", named));
        }
        left_over.push_back(services[i].devices - named);
    }
    std::vector<long> next(of_services.size(), 0); // [service]
    std::vector<adjacent_devices> found;
    for (const device_host &host : hosts) {
        auto const service = static_cast<std::size_t>(
            std::ranges::find_if(
                of_services, [&](const device_host &each) { return is_same_service(each, host); }) -
            of_services.begin());
        long const count = host.devices > 0 ? host.devices : std::exchange(left_over[service], 0);
        found.push_back({&services[service], next[service], count});
        next[service] += count;
    }
    return found;
}

result<device_host> parse_device_host(std::string_view text) {
    device_host host;
    auto const bracket = text.starts_with('[') ? text.find(']') : std::string_view::npos;
    auto const end = bracket != std::string_view::npos ? bracket + 1 : text.find(':');
    std::string_view const rest = end < text.size() ? text.substr(end) : std::string_view();
    host.name =
        bracket != std::string_view::npos ? text.substr(1, bracket - 1) : text.substr(0, end);
    if (!is_host_name(host.name)) {
        return error(OMPX_ERR_ARG, fmt::format("'{}' is not a host name", host.name));
    }
    if (!parse_devices(rest, host)) {
        return error(
            OMPX_ERR_ARG,
            fmt::format("'{}' is not HOST, HOST:N, HOST:KIND or HOST:KIND:N with a KIND of "
                        "{} and N from 1 to {}; addresses with colons stand in brackets",
                        text, fmt::join(kinds, ", "), max_devices));
    }
    return host;
}

} // namespace

result<std::vector<device_host>> parse_device_hosts(std::string_view text) {
    std::vector<device_host> hosts;
    while (true) {
        auto const comma = text.find(',');
        auto parsed = parse_device_host(text.substr(0, comma));
        DIOMP_TRY(parsed);
        hosts.push_back(parsed.take());
        if (comma == std::string_view::npos) {
            break;
        }
        text.remove_prefix(comma + 1);
    }
    for (const device_host &each : services_for(hosts)) {
        if (each.devices > max_devices) {
            return error(OMPX_ERR_ARG,
                         fmt::format("more than {} devices of {}", max_devices, each.name));
        }
    }
    return hosts;
}

std::vector<device_host> services_for(const std::vector<device_host> &hosts) {
    std::vector<device_host> services;
    for (const device_host &host : hosts) {
        auto const known = std::ranges::find_if(
            services, [&host](const device_host &each) { return is_same_service(each, host); });
        if (known == services.end()) {
            services.push_back(host);
        } else {
            bool const all = known->devices == 0 || host.devices == 0;
            known->devices = all ? 0 : known->devices + host.devices;
        }
    }
    return services;
}

status check_devices(const std::vector<device_host> &hosts, int ranks) {
    long total = 0;
    for (const device_host &each : hosts) {
        if (each.devices == 0) {
            return {};
        }
        total += each.devices;
    }
    return hosts.empty() || total >= ranks ? status() : status(too_few_devices(total, ranks));
}

result<std::vector<std::string>> assign_devices(const std::vector<device_host> &hosts,
                                                const std::vector<device_service> &services,
                                                int ranks) {
    auto in_order = devices_in_order(hosts, services);
    DIOMP_TRY(in_order);
    long total = 0;
    for (const adjacent_devices &each : in_order.value()) {
        total += each.count;
    }
    if (total < ranks) {
        return too_few_devices(total, ranks);
    }
    std::vector<std::string> assigned(static_cast<std::size_t>(ranks));
    long begin = 0; // index of the first one among all
    for (const adjacent_devices &each : in_order.value()) {
        device_service const &of = *each.of;
        bool const brackets = of.address.find(':') != std::string::npos;
        for (long first = begin; first < begin + each.count;) {
            auto const rank = first * ranks / total;
            long const next =
                ((rank + 1) * total + ranks - 1) / ranks; // first device of the next rank
            long const end = std::min(next, begin + each.count);
            std::string &rank_devices = assigned[static_cast<std::size_t>(rank)];
            rank_devices += fmt::format("{}{}{}{}:{}@{}*{}", rank_devices.empty() ? "" : ",",
                                        brackets ? "[" : "", of.address, brackets ? "]" : "",
                                        of.port, each.first + first - begin, end - first);
            first = end;
        }
        begin += each.count;
    }
    return assigned;
}

int helper_threads(std::string_view rank_devices, std::size_t processors) {
    constexpr int min_threads = 2;
    constexpr int default_threads = 8;
    constexpr int max_threads = 16;
    int devices = 0;
    for (std::size_t star = rank_devices.find('*'); star != std::string_view::npos;
         star = rank_devices.find('*', star + 1)) {
        int count = 0;
        std::from_chars(rank_devices.data() + star + 1, rank_devices.data() + rank_devices.size(),
                        count);
        devices += count;
    }
    auto const cores = static_cast<int>(std::min<std::size_t>(processors, default_threads));
    return std::clamp(std::max(devices, cores), min_threads, max_threads);
}

} // namespace diomp::run
