// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace diomp::run {
namespace {

constexpr int max_slots = 100000;
constexpr std::string_view blanks = " \t\r";

std::string_view trim(std::string_view text) {
    auto const first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::optional<int> parse_slots(std::string_view text) {
    int value = 0;
    auto const parsed = std::from_chars(text.begin(), text.end(), value);
    bool const good =
        parsed.ec == std::errc() && parsed.ptr == text.end() && value >= 1 && value <= max_slots;
    return good ? std::optional(value) : std::nullopt;
}

/// Parses "a", "a:2", "[::1]:2", "::1": a colon separates slots only if it is the only colon or
/// follows a bracket.
result<host_slots> parse_host(std::string_view text) {
    host_slots host;
    auto const colon = text.rfind(':');
    bool const has_slots = colon != std::string_view::npos &&
                           (text.find(':') == colon || (colon > 0 && text[colon - 1] == ']'));
    std::string_view name = text.substr(0, has_slots ? colon : text.size());
    if (name.starts_with('[') && name.ends_with(']')) {
        name = name.substr(1, name.size() - 2);
    }
    if (!is_host_name(name)) {
        return error(OMPX_ERR_ARG, fmt::format("'{}' is not a host name", name));
    }
    host.name = name;
    if (has_slots) {
        auto const slots = parse_slots(text.substr(colon + 1));
        if (!slots) {
            return error(OMPX_ERR_ARG, fmt::format("'{}' is not a number of slots from 1 to {}",
                                                   text.substr(colon + 1), max_slots));
        }
        host.slots = *slots;
    }
    return host;
}

void add_host(std::vector<host_slots> &hosts, host_slots host) {
    auto const known = std::ranges::find(hosts, host.name, &host_slots::name);
    if (known == hosts.end()) {
        hosts.push_back(std::move(host));
    } else {
        known->slots = std::max(known->slots, 1) + std::max(host.slots, 1);
    }
}

result<host_slots> parse_line(std::string_view line) {
    auto const end = line.find_first_of(blanks);
    auto host = parse_host(line.substr(0, end));
    std::string_view rest = end == line.npos ? std::string_view() : trim(line.substr(end));
    constexpr std::string_view keyword = "slots=";
    if (!host || rest.empty()) {
        return host;
    }
    auto const slots = rest.starts_with(keyword) && host.value().slots == 0
                           ? parse_slots(rest.substr(keyword.size()))
                           : std::nullopt;
    if (!slots) {
        return error(OMPX_ERR_ARG, fmt::format("'{}' is not slots=N", rest));
    }
    host.value().slots = *slots;
    return host;
}

} // namespace

bool is_host_name(std::string_view name) {
    return !name.empty() && !name.starts_with('-') &&
           name.find_first_of(" \t'\"\\") == std::string_view::npos;
}

result<std::vector<host_slots>> parse_hosts(std::string_view text) {
    std::vector<host_slots> hosts;
    while (true) {
        auto const comma = text.find(',');
        auto host = parse_host(trim(text.substr(0, comma)));
        DIOMP_TRY(host);
        add_host(hosts, host.take());
        if (comma == std::string_view::npos) {
            return hosts;
        }
        text.remove_prefix(comma + 1);
    }
}

result<std::vector<host_slots>> parse_host_file(std::string_view content, const std::string &path) {
    std::vector<host_slots> hosts;
    for (int number = 1; !content.empty(); ++number) {
        auto const end = content.find('\n');
        std::string_view line = content.substr(0, end);
        content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
        line = trim(line.substr(0, line.find('#')));
        if (line.empty()) {
            continue;
        }
        auto host = parse_line(line);
        if (!host) {
            return error(OMPX_ERR_ARG,
                         fmt::format("{}:{}: {}", path, number, host.failure().message()));
        }
        add_host(hosts, host.take());
    }
    if (hosts.empty()) {
        return error(OMPX_ERR_ARG, path + " names no host");
    }
    return hosts;
}

result<std::vector<rank_block>> assign_to_hosts(const std::vector<host_slots> &hosts, int ranks,
                                                bool oversubscribe) {
    auto const count = static_cast<int>(hosts.size());
    bool const slots_given = std::ranges::any_of(hosts, [](auto &host) { return host.slots > 0; });
    long total = 0; // slots of all hosts
    for (const host_slots &host : hosts) {
        total += std::max(host.slots, 1);
    }
    if (ranks == 0) {
        ranks = static_cast<int>(std::min<long>(total, max_slots));
    }
    if (slots_given && ranks > total && !oversubscribe) {
        return error(OMPX_ERR_ARG,
                     fmt::format("{} ranks do not fit the {} slots of {} host{}", ranks, total,
                                 count, count == 1 ? "" : "s"),
                     "give the hosts more slots, or use --oversubscribe");
    }
    std::vector<rank_block> blocks;
    int next = 0;
    long rest = slots_given ? ranks % total : ranks % count;
    for (const host_slots &host : hosts) {
        long const slots = slots_given ? std::max(host.slots, 1) : 1;
        long const extra = std::min(rest, slots);
        auto const here = static_cast<int>(ranks / (slots_given ? total : count) * slots + extra);
        rest -= extra;
        if (here > 0) {
            blocks.push_back({host.name, next, here});
        }
        next += here;
    }
    return blocks;
}

} // namespace diomp::run
