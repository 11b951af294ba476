// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/sizes.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cstring>
#include <limits>

namespace diomp {

result<std::size_t> parse_size(const std::string &text) {
    std::size_t number = 0;
    auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    auto const malformed = [&text](const char *wanted) {
        return error(OMPX_ERR_ARG, fmt::format("'{}' is not {}", text, wanted));
    };
    constexpr const char *allowed = "a size such as 4096, 64K, 16M, 2G or 1T";
    if (code != std::errc{}) {
        return malformed(allowed);
    }
    std::string suffix(end, text.data() + text.size());
    unsigned shift = 0;
    if (!suffix.empty()) {
        constexpr const char *unit_prefixes = "KMGT";
        const char *unit_prefix = std::strchr(unit_prefixes, suffix.front() & ~0x20);
        if (unit_prefix != nullptr && *unit_prefix != '\0') {
            shift = 10 * static_cast<unsigned>(unit_prefix - unit_prefixes + 1);
            suffix.erase(0, 1);
        }
        if (!suffix.empty() && suffix != "B" && suffix != "iB") {
            return malformed(allowed);
        }
    }
    if (shift > 0 && number > (std::numeric_limits<std::size_t>::max() >> shift)) {
        return malformed("a size that fits in 64 bits");
    }
    return number << shift;
}

std::string format_size(std::size_t size_bytes) {
    constexpr std::array<const char *, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(size_bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < units.size()) {
        value /= 1024;
        ++unit;
    }
    if (value == static_cast<double>(static_cast<std::size_t>(value))) {
        return fmt::format("{} {}", static_cast<std::size_t>(value), units[unit]);
    }
    return fmt::format("{:.1f} {}", value, units[unit]);
}

} // namespace diomp
