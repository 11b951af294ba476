// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Outermost exception handler of a tool. Expected failures are results; an unexpected exception
// (out of memory, output that fmt cannot write) ends the tool with a message and not with
// std::terminate.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace diomp {

/// Exit status after an unhandled exception.
inline constexpr int status_unhandled_exception = 1;

/// Calls `body`, which returns the exit status of the tool `name`.
template <typename Body>
int run_tool(const char *name, const Body &body) noexcept {
    try {
        return body();
    } catch (const std::exception &unhandled) {
        std::fprintf(stderr, "%s: %s\n", name, unhandled.what());
    } catch (...) {
        std::fprintf(stderr, "%s: an exception of an unknown type\n", name);
    }
    return status_unhandled_exception;
}

/// For an option whose range CLI11 checks: it takes "nan" for a number in every range.
inline std::string refuse_nan(const std::string &text) {
    return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is not a number" : "";
}

} // namespace diomp
