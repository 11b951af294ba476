// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/long_value.h"

#include "launch/launch.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace diomp::launch {
namespace {

constexpr std::size_t max_part_bytes = 3000;

std::string part_key(std::string_view key, std::size_t part) {
    return fmt::format("{}.{}", key, part);
}

} // namespace

// The first part begins with the number of parts.
status publish_long_value(launcher &launcher, std::string_view key, std::string_view text) {
    std::size_t const num_parts =
        std::max<std::size_t>(1, (text.size() + max_part_bytes - 1) / max_part_bytes);
    for (std::size_t part = 0; part < num_parts; ++part) {
        std::string value = part == 0 ? fmt::format("{} ", num_parts) : "";
        value += text.substr(part * max_part_bytes, max_part_bytes);
        DIOMP_TRY(launcher.put(part_key(key, part), value));
    }
    return {};
}

result<std::string> fetch_long_value(launcher &launcher, std::string_view key, world_rank owner) {
    auto first = launcher.get(owner, part_key(key, 0));
    DIOMP_TRY(first);
    std::string text = first.take();
    std::size_t const begin = text.find(' ');
    std::size_t num_parts = 0;
    auto const parsed = std::from_chars(text.data(), text.data() + text.size(), num_parts);
    if (parsed.ec != std::errc{} || begin == std::string::npos ||
        parsed.ptr != text.data() + begin || num_parts == 0) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("rank {}'s value '{}' is malformed: \"{}\"", owner.value(), key,
                                 std::string_view(text).substr(0, 80)),
                     "all ranks must run the same version of DiOMP");
    }
    text.erase(0, begin + 1);
    for (std::size_t part = 1; part < num_parts; ++part) {
        auto value = launcher.get(owner, part_key(key, part));
        DIOMP_TRY(value);
        text += value.value();
    }
    return text;
}

} // namespace diomp::launch
