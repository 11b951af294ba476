// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kinds of settings: each type below parses the text of a variable into a value, or returns the
// reason why it cannot, and shows a value in the form of the variable.
#pragma once

#include "base/log_levels.h"
#include "base/result.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace diomp::config {

/// "'<text>' is not <allowed>".
error malformed(const std::string &text, std::string_view allowed);
/// "'<text>' is not one of <choices>", which are separated by bars.
error not_among(const std::string &text, std::string_view choices);

struct seconds {
    static status parse(double &into, const std::string &text);
    static std::string show(double value);
};

struct size {
    static status parse(std::size_t &into, const std::string &text);
    static std::string show(std::size_t size_bytes);
};

/// 0 stands for "auto".
struct auto_size {
    static status parse(std::size_t &into, const std::string &text);
    static std::string show(std::size_t size_bytes);
};

status parse_auto_number(int &into, const std::string &text, int min_value, int auto_value);
std::string show_auto_number(int value, int auto_value);

/// A number from MinValue up; AutoValue stands for "auto".
template <int MinValue, int AutoValue>
struct auto_number {
    static status parse(int &into, const std::string &text) {
        return parse_auto_number(into, text, MinValue, AutoValue);
    }
    static std::string show(int value) { return show_auto_number(value, AutoValue); }
};

struct any_text {
    static status parse(std::string &into, const std::string &text) {
        into = text;
        return {};
    }
    static std::string show(const std::string &value) { return value; }
};

status parse_choice(std::string &into, const std::string &text, std::string_view choices);

/// One of Choices, which are separated by bars.
template <const char *Choices>
struct choice : any_text {
    static status parse(std::string &into, const std::string &text) {
        return parse_choice(into, text, Choices);
    }
};

/// One of the first elements of Words; the value is the second one.
template <const auto &Words>
struct word {
    template <typename Value>
    static status parse(Value &into, const std::string &text) {
        std::string choices;
        for (auto const &[name, value] : Words) {
            if (text == name) {
                into = value;
                return {};
            }
            choices += choices.empty() ? "" : "|";
            choices += name;
        }
        return not_among(text, choices);
    }
    template <typename Value>
    static std::string show(Value value) {
        for (auto const &[name, candidate] : Words) {
            if (candidate == value) {
                return name;
            }
        }
        return "?";
    }
};

inline constexpr std::array<std::pair<const char *, bool>, 2> switch_words{
    {{"on", true}, {"off", false}}};
using on_off = word<switch_words>;

/// One level for all, or COMPONENT:LEVEL, separated by commas; a later one takes precedence.
struct component_levels {
    static status parse(log_levels &into, const std::string &text);
    static std::string show(const log_levels &levels);
};

} // namespace diomp::config
