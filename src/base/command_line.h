// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Command lines of tools, by CLI11.
#pragma once

#include "base/tool_main.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace diomp {

/// CLI::Range without "nan", which it takes for a number in every range.
inline CLI::Validator number_range(double least, double largest) {
    CLI::Validator const range = CLI::Range(least, largest);
    return {[range](std::string &text) {
                bool const is_nan = std::isnan(std::strtod(text.c_str(), nullptr));
                return is_nan ? text + " is not a number" : range(text);
            },
            range.get_description()};
}

/// Refuses an empty value: that of a variable which is not set, in a script.
inline CLI::Validator not_empty() {
    return {[](std::string &text) { return std::string(text.empty() ? "empty" : ""); }, ""};
}

/// app.parse(words...). The exit status if the tool is to end: that of --help and others, or
/// `misuse` after a message.
template <typename... Words>
std::optional<int> parse_command_line(CLI::App &app, int misuse, Words &&...words) {
    try {
        app.parse(std::forward<Words>(words)...);
    } catch (const CLI::Success &request) {
        return exit_status(app.get_name().c_str(), app.exit(request));
    } catch (const CLI::ParseError &error) {
        const char *const name = app.get_name().c_str();
        std::fprintf(stderr, "%s: %s\nTry '%s --help'.\n", name, error.what(), name);
        return misuse;
    }
    return std::nullopt;
}

} // namespace diomp
