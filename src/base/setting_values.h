// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parsing and formatting of each kind of setting. Sizes: settings.h.
#pragma once

#include "base/log_levels.h"
#include "base/result.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace diomp {

/// "'<text>' is not <allowed>".
error malformed(const std::string &text, const char *allowed);

status parse_seconds(double &into, const std::string &text);

/// 0 stands for "auto".
status parse_auto_size(std::size_t &into, const std::string &text);
std::string show_auto_size(std::size_t size_bytes);

/// `auto_value` stands for "auto".
status parse_auto_number(int &into, const std::string &text, int min_value, int auto_value);
std::string show_auto_number(int value, int auto_value);

/// Parses one of `choices`, which are separated by bars.
status parse_choice(std::string &into, const std::string &text, std::string_view choices);

/// One level for all, or COMPONENT:LEVEL, separated by commas; a later one takes precedence.
status parse_log_levels(log_levels &into, const std::string &text);
std::string show_log_levels(const log_levels &levels);

template <typename Enum, std::size_t N>
status parse_word(Enum &into, const std::string &text,
                  const std::array<std::pair<const char *, Enum>, N> &words, const char *allowed) {
    for (auto const &[word, value] : words) {
        if (text == word) {
            into = value;
            return {};
        }
    }
    return malformed(text, allowed);
}

template <typename Enum, std::size_t N>
std::string show_word(Enum value, const std::array<std::pair<const char *, Enum>, N> &words) {
    for (auto const &[word, candidate] : words) {
        if (candidate == value) {
            return word;
        }
    }
    return "?";
}

} // namespace diomp
