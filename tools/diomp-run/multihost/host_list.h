// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parses lists of hosts and assigns ranks to them. No input or output.
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

/// Parses "a,b:2,[fe80::1]:4". A repeated name adds to its slots.
result<std::vector<host_slots>> parse_hosts(std::string_view text);
/// Parses a file with one host per line, "a", "a:2" or "a slots=2"; # starts a comment. `path` is
/// for messages.
result<std::vector<host_slots>> parse_host_file(std::string_view content, const std::string &path);

/// Returns whether the name can be an argument of a remote shell; a name that begins with - would
/// be taken for an option.
[[nodiscard]] bool is_host_name(std::string_view name);

/// A block of consecutive ranks on one host.
struct rank_block {
    std::string name;
    int first_rank = 0;
    int ranks = 0;
    [[nodiscard]] bool contains(int rank) const {
        return rank >= first_rank && rank < first_rank + ranks;
    }
    bool operator==(const rank_block &) const = default;
};

/// Assigns ranks to hosts in blocks, in the order of the hosts; hosts without a rank are left out.
/// If no host has slots, the blocks are equal, with the first ones larger by one if necessary;
/// `ranks` 0 means one per host. If any host has slots (the others count as one), each host is
/// filled before the next; `ranks` 0 means all slots. More ranks than slots are an error, unless
/// `oversubscribe` is set, which fills all slots repeatedly.
result<std::vector<rank_block>> assign_to_hosts(const std::vector<host_slots> &hosts, int ranks,
                                                bool oversubscribe);

} // namespace diomp::run
