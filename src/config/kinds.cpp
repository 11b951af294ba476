// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "config/internal/kinds.h"

#include "base/sizes.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

namespace diomp::config {
namespace {

constexpr std::array<std::pair<const char *, log_level>, 5> log_words{
    {{"off", log_level::off},
     {"error", log_level::error},
     {"warn", log_level::warn},
     {"info", log_level::info},
     {"debug", log_level::debug}}};
using level_word = word<log_words>;

} // namespace

error malformed(const std::string &text, std::string_view allowed) {
    return {OMPX_ERR_ARG, fmt::format("'{}' is not {}", text, allowed)};
}

error not_among(const std::string &text, std::string_view choices) {
    std::string allowed = "one of ";
    for (char const character : choices) {
        allowed += character == '|' ? std::string(", ") : std::string(1, character);
    }
    return malformed(text, allowed);
}

status seconds::parse(double &into, const std::string &text) {
    char *end = nullptr;
    double const value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 0) || value > 1e9) {
        return malformed(text, "a number of seconds from 0 to 1e9");
    }
    into = value;
    return {};
}

std::string seconds::show(double value) { return fmt::format("{}", value); }

status size::parse(std::size_t &into, const std::string &text) {
    auto parsed = parse_size(text);
    DIOMP_TRY(parsed);
    into = parsed.value();
    return {};
}

std::string size::show(std::size_t size_bytes) { return format_size(size_bytes); }

status auto_size::parse(std::size_t &into, const std::string &text) {
    if (text == "auto") {
        into = 0;
        return {};
    }
    std::size_t parsed = 0;
    DIOMP_TRY(size::parse(parsed, text));
    if (parsed == 0) {
        return malformed(text, "a size above 0 or 'auto'");
    }
    into = parsed;
    return {};
}

std::string auto_size::show(std::size_t size_bytes) {
    return size_bytes == 0 ? "auto" : format_size(size_bytes);
}

status parse_auto_number(int &into, const std::string &text, int min_value, int auto_value) {
    if (text == "auto") {
        into = auto_value;
        return {};
    }
    int value = 0;
    auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size() || value < min_value) {
        return error(OMPX_ERR_ARG, fmt::format("'{}' is not a number from {} to {}, or 'auto'",
                                               text, min_value, std::numeric_limits<int>::max()));
    }
    into = value;
    return {};
}

std::string show_auto_number(int value, int auto_value) {
    return value == auto_value ? "auto" : fmt::format("{}", value);
}

status parse_choice(std::string &into, const std::string &text, std::string_view choices) {
    for (std::string_view rest = choices; !rest.empty();) {
        std::string_view const each = rest.substr(0, rest.find('|'));
        if (each == text) {
            into = text;
            return {};
        }
        rest.remove_prefix(std::min(rest.size(), each.size() + 1));
    }
    return not_among(text, choices);
}

/// In the list of components `time` has a place that no source has: it selects no messages, but
/// what base/log.cpp writes in front of them.
constexpr std::string_view time_stamps = "time";

status component_levels::parse(log_levels &into, const std::string &text) {
    log_levels parsed;
    std::string_view rest = text;
    do {
        auto const end = std::min(rest.find(','), rest.size());
        std::string_view const item = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (item == time_stamps) {
            parsed.components.push_back({std::string(item), log_level::off});
            continue;
        }
        auto const colon = item.find(':');
        log_level level{};
        std::string const name(colon == std::string_view::npos ? item : item.substr(colon + 1));
        DIOMP_TRY(level_word::parse(level, name));
        if (colon == std::string_view::npos) {
            parsed.standard = level;
            continue;
        }
        std::string const component(item.substr(0, colon));
        if (!is_log_component(component)) {
            return malformed(component, "a component, as tcp, coll or offload");
        }
        parsed.components.push_back({component, level});
    } while (!rest.empty());
    into = std::move(parsed);
    return {};
}

std::string component_levels::show(const log_levels &levels) {
    std::string shown = level_word::show(levels.standard);
    for (auto const &each : levels.components) {
        shown += each.component == time_stamps
                     ? ",time"
                     : fmt::format(",{}:{}", each.component, level_word::show(each.level));
    }
    return shown;
}

} // namespace diomp::config
