// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Outermost exception handler of a tool. Expected failures are results; an unexpected exception
// (out of memory, output that fmt cannot write) ends the tool with a message and not with
// std::terminate.
#pragma once

#include <cstdio>
#include <exception>

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

} // namespace diomp
