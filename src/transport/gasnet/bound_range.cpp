// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/bound_range.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

namespace diomp::transport::gasnet {

const bound_range *find_enclosing(std::span<const bound_range> all,
                                  const memory_range &range_inside) {
    auto const found = std::ranges::find_if(
        all, [&](const auto &each) { return each.range.contains(range_inside); });
    return found == all.end() ? nullptr : &*found;
}

std::string to_text(std::span<const bound_range> all) {
    std::string text;
    for (bound_range const &each : all) {
        text += fmt::format("{} {} {} {} ", static_cast<int>(each.range.kind), each.range.address,
                            each.range.nbytes, each.endpoint);
    }
    return text;
}

std::vector<bound_range> ranges_from(const std::string &text) {
    std::vector<bound_range> all;
    std::istringstream words(text);
    int kind = 0;
    bound_range next;
    while (words >> kind >> next.range.address >> next.range.nbytes >> next.endpoint) {
        next.range.kind = static_cast<memory_kind>(kind);
        all.push_back(next);
    }
    return all;
}

} // namespace diomp::transport::gasnet
