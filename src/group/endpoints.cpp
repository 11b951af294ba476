// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/endpoints.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace diomp::group {
namespace {

std::vector<std::uint32_t> order_by_member(const std::vector<endpoint> &all) {
    std::vector<std::uint32_t> order(all.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, {},
                      [&all](std::uint32_t index) { return std::pair(all[index].member, index); });
    return order;
}

/// Start of each member's endpoints in that order, and the end.
std::vector<std::uint32_t> first_of_each(const std::vector<endpoint> &all,
                                         std::size_t num_members) {
    std::vector<std::uint32_t> first(num_members + 1);
    for (const endpoint &each : all) {
        ++first[each.member + 1];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    return first;
}

std::size_t max_endpoints_per_member(const std::vector<std::uint32_t> &first) {
    std::size_t max_count = 1;
    for (std::size_t member = 0; member + 1 < first.size(); ++member) {
        max_count = std::max<std::size_t>(max_count, first[member + 1] - first[member]);
    }
    return max_count;
}

} // namespace

endpoint_list::endpoint_list(std::vector<endpoint> all, std::size_t num_members)
    : all_(std::move(all)), by_member_(order_by_member(all_)),
      first_(first_of_each(all_, num_members)), max_per_member_(max_endpoints_per_member(first_)),
      contiguous_(std::ranges::is_sorted(all_, {}, &endpoint::member)) {}

parsed_endpoints split_endpoint_list(std::span<const ompx_endpoint_t> list) {
    parsed_endpoints parts;
    std::unordered_map<int, std::uint32_t> known;
    for (const ompx_endpoint_t &each : list) {
        auto const [entry, is_new] =
            known.try_emplace(each.rank, static_cast<std::uint32_t>(parts.members.size()));
        if (is_new) {
            parts.members.emplace_back(each.rank);
        }
        parts.endpoints.push_back({entry->second, each.device});
    }
    return parts;
}

} // namespace diomp::group
