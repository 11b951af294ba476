// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Hosts as users write them, and which ranks go where. Pure logic.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace diomp::run {

struct host_slots {
    std::string name;
    int slots = 0; ///< 0: not given
    bool operator==(const host_slots &) const = default;
};

/// "a,b:2,[fe80::1]:4". A name that comes again adds to its slots.
result<std::vector<host_slots>> parse_hosts(std::string_view text);
/// One host per line, "a", "a:2" or "a slots=2"; # starts a comment. `path` is for messages.
result<std::vector<host_slots>> parse_host_file(std::string_view content, const std::string &path);

/// Fit for a remote shell's command line: one that looks like an option would be one.
[[nodiscard]] bool is_host_name(std::string_view name);

/// Consecutive ranks on one host.
struct host_share {
    std::string name;
    int first_rank = 0;
    int ranks = 0;
    bool operator==(const host_share &) const = default;
};

/// Ranks in blocks, hosts in their order; a host without a rank is left out. Without slots
/// anywhere: equal blocks, the first ones larger by one if need be; `ranks` 0 means one each. With
/// slots (a host without has one): each host is filled before the next; `ranks` 0 means all slots.
/// More ranks than slots are an error unless `oversubscribe`, which fills all of them again and
/// again.
result<std::vector<host_share>> place_on_hosts(const std::vector<host_slots> &hosts, int ranks,
                                               bool oversubscribe);

} // namespace diomp::run
