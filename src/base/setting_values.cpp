// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/setting_values.h"

#include "base/settings.h"
#include "base/sizes.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace diomp {
namespace {

constexpr std::array<std::pair<const char *, log_level>, 5> log_words{
    {{"off", log_level::off},
     {"error", log_level::error},
     {"warn", log_level::warn},
     {"info", log_level::info},
     {"debug", log_level::debug}}};

} // namespace

error malformed(const std::string &text, const char *allowed) {
    return {OMPX_ERR_ARG, fmt::format("'{}' is not {}", text, allowed)};
}

status parse_seconds(double &into, const std::string &text) {
    char *end = nullptr;
    double const value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 0) || value > 1e9) {
        return malformed(text, "a number of seconds from 0 to 1e9");
    }
    into = value;
    return {};
}

status parse_auto_size(std::size_t &into, const std::string &text) {
    if (text == "auto") {
        into = 0;
        return {};
    }
    auto size = parse_size(text);
    DIOMP_TRY(size);
    if (size.value() == 0) {
        return malformed(text, "a size above 0 or 'auto'");
    }
    into = size.value();
    return {};
}

std::string show_auto_size(std::size_t size_bytes) {
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
        return error(OMPX_ERR_ARG,
                     fmt::format("'{}' is not a number from {} up, or 'auto'", text, min_value));
    }
    into = value;
    return {};
}

std::string show_auto_number(int value, int auto_value) {
    return value == auto_value ? "auto" : fmt::format("{}", value);
}

status parse_choice(std::string &into, const std::string &text, std::string_view choices) {
    std::string allowed = "one of ";
    while (!choices.empty()) {
        std::string_view const choice = choices.substr(0, choices.find('|'));
        if (choice == text) {
            into = text;
            return {};
        }
        choices.remove_prefix(std::min(choices.size(), choice.size() + 1));
        allowed += choice;
        allowed += choices.empty() ? "" : ", ";
    }
    return malformed(text, allowed.c_str());
}

status parse_log_levels(log_levels &into, const std::string &text) {
    log_levels parsed;
    std::string_view rest = text;
    do {
        auto const end = std::min(rest.find(','), rest.size());
        std::string_view const item = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        auto const colon = item.find(':');
        log_level level{};
        std::string const word(colon == std::string_view::npos ? item : item.substr(colon + 1));
        DIOMP_TRY(parse_word(level, word, log_words, "one of off, error, warn, info, debug"));
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

std::string show_log_levels(const log_levels &levels) {
    std::string shown = show_word(levels.standard, log_words);
    for (auto const &each : levels.components) {
        shown += fmt::format(",{}:{}", each.component, show_word(each.level, log_words));
    }
    return shown;
}

} // namespace diomp
