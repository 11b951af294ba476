// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/node_layout.h"

#include "base/assert.h"
#include "launch/launch.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <unordered_map>

namespace diomp::group {
namespace {

constexpr const char *layout_key = "node";

/// Ranks on the caller's node, ascending.
std::vector<int> direct_ranks(const launch::job_info &job, const transport::conduit &transport) {
    std::vector<int> ranks;
    for (world_rank const each : job.local_ranks) {
        if (transport.direct_base(each) != nullptr) {
            ranks.push_back(each.value());
        }
    }
    std::ranges::sort(ranks);
    return ranks;
}

/// Format "0-3,8": ranks of a node are usually consecutive, so the text is short.
std::string to_text(const std::vector<int> &ranks) {
    std::string text;
    for (std::size_t begin = 0; begin < ranks.size();) {
        std::size_t end = begin + 1;
        while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) {
            ++end;
        }
        text += fmt::format("{}{}-{}", text.empty() ? "" : ",", ranks[begin], ranks[end - 1]);
        begin = end;
    }
    return text;
}

/// Sets `node` for the ranks of a text; false if the text is malformed.
bool from_text(std::string_view text, std::int32_t node, std::vector<std::int32_t> &node_of) {
    while (!text.empty()) {
        std::string_view const part = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), part.size() + 1));
        int first = 0;
        int last = 0;
        const char *const end = part.data() + part.size();
        // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `end` bounds it
        auto const low = std::from_chars(part.data(), end, first);
        if (low.ec != std::errc{} || low.ptr == end || *low.ptr != '-') {
            return false;
        }
        auto const high = std::from_chars(low.ptr + 1, end, last);
        if (high.ec != std::errc{} || high.ptr != end || first < 0 || last < first ||
            static_cast<std::size_t>(last) >= node_of.size()) {
            return false;
        }
        std::fill(node_of.begin() + first, node_of.begin() + last + 1, node);
    }
    return true;
}

} // namespace

status publish_node(launch::launcher &launcher, const transport::conduit &transport) {
    std::vector<int> const ranks = direct_ranks(launcher.info(), transport);
    bool const alone = ranks.size() == static_cast<std::size_t>(launcher.info().size);
    if (alone || ranks.front() != launcher.info().rank.value()) {
        return {};
    }
    return launcher.put(layout_key, to_text(ranks));
}

result<node_map> fetch_node_map(launch::launcher &launcher, const transport::conduit &transport) {
    auto const num_ranks = static_cast<std::size_t>(launcher.info().size);
    if (direct_ranks(launcher.info(), transport).size() == num_ranks) {
        return node_map{};
    }
    constexpr std::int32_t unknown = -1;
    std::vector<std::int32_t> node_of(num_ranks, unknown);
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
        if (node_of[rank] != unknown) {
            continue;
        }
        auto const number = static_cast<std::int32_t>(rank);
        auto text = launcher.get(world_rank{number}, layout_key);
        DIOMP_TRY(text);
        if (!from_text(text.value(), number, node_of) || node_of[rank] != number) {
            return error(OMPX_ERR_SYSTEM,
                         fmt::format("rank {} published \"{}\" as the ranks of its node", rank,
                                     text.value()),
                         "all ranks must run the same version of DiOMP");
        }
    }
    return node_map{std::move(node_of)};
}

std::vector<std::uint32_t> node_layout::members_of(std::size_t node) const {
    std::vector<std::uint32_t> found;
    found.reserve(sizes[node]);
    for (std::uint32_t member = leaders[node]; found.size() < sizes[node]; ++member) {
        if (this->node(member) == node) {
            found.push_back(member);
        }
    }
    return found;
}

std::vector<std::uint32_t> node_layout::members_with_index(std::size_t local_index) const {
    std::vector<std::uint32_t> found = leaders;
    if (contiguous) {
        for (std::uint32_t &member : found) {
            member += static_cast<std::uint32_t>(local_index);
        }
        return found;
    }
    std::vector<std::uint32_t> seen(num_nodes());
    for (std::uint32_t member = 0; member < node_of.size(); ++member) {
        std::size_t const on = node_of[member];
        if (seen[on]++ == local_index) {
            found[on] = member;
        }
    }
    return found;
}

node_layout make_node_layout(std::span<const world_rank> members, std::size_t self,
                             const node_map &nodes) {
    node_layout made;
    made.members = members;
    std::unordered_map<std::int32_t, std::uint32_t> number_of;
    made.node_of.reserve(members.size());
    for (std::uint32_t member = 0; member < members.size(); ++member) {
        auto const [found, is_new] =
            number_of.try_emplace(nodes[members[member]], made.leaders.size());
        if (is_new) {
            made.leaders.push_back(member);
            made.sizes.push_back(0);
        }
        std::uint32_t const node = found->second;
        made.contiguous &= made.leaders[node] + made.sizes[node] == member;
        ++made.sizes[node];
        made.node_of.push_back(node);
    }
    made.own_node = made.node_of[self];
    made.local_members = made.members_of(made.own_node);
    made.own_local_index = static_cast<std::uint32_t>(std::ranges::find(made.local_members, self) -
                                                      made.local_members.begin());
    DIOMP_ASSERT(made.own_local_index < made.local_members.size(), "the caller is on its own node");
    DIOMP_ASSERT(made.sizes[made.own_node] == made.local_members.size(),
                 "each node's members are counted");
    if (made.num_nodes() == 1) {
        made.node_of.clear();
        made.node_of.shrink_to_fit();
    }
    return made;
}

} // namespace diomp::group
