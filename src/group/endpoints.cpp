// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/endpoints.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace diomp::group {

endpoint_list::endpoint_list(std::vector<endpoint> all, std::size_t num_members)
    : all_(std::move(all)), by_member_(all_.size()), first_(num_members + 1) {
    std::iota(by_member_.begin(), by_member_.end(), 0U);
    std::ranges::sort(by_member_, {},
                      [this](std::uint32_t index) { return std::pair(all_[index].member, index); });
    contiguous_ = std::ranges::is_sorted(all_, {}, &endpoint::member);
    for (const endpoint &each : all_) {
        ++first_[each.member + 1];
    }
    most_ = first_.empty() ? 1 : std::ranges::max(first_);
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
}

endpoint_parts take_apart(std::span<const ompx_endpoint_t> list) {
    endpoint_parts parts;
    std::unordered_map<int, std::uint32_t> known;
    for (const ompx_endpoint_t &each : list) {
        auto const [place, is_new] =
            known.try_emplace(each.rank, static_cast<std::uint32_t>(parts.members.size()));
        if (is_new) {
            parts.members.emplace_back(each.rank);
        }
        parts.endpoints.push_back({place->second, each.device});
    }
    return parts;
}

} // namespace diomp::group
