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
inline constexpr int status_unwritten_output = 1;

/// The exit status of the tool `name`: `status`, or a failure after a message if that is 0 and the
/// standard output could not be written.
inline int exit_status(const char *name, int status) noexcept {
    // Also what others have flushed before, such as the runtime when it starts processes.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
        return status;
    }
    std::fprintf(stderr, "%s: standard output cannot be written\n", name);
    return status != 0 ? status : status_unwritten_output;
}

/// Calls `body`, which returns the exit status of the tool `name`.
template <typename Body>
int run_tool(const char *name, const Body &body) noexcept {
    try {
        return exit_status(name, body());
    } catch (const std::exception &unhandled) {
        std::fprintf(stderr, "%s: %s\n", name, unhandled.what());
    } catch (...) {
        std::fprintf(stderr, "%s: an exception of an unknown type\n", name);
    }
    return status_unhandled_exception;
}

} // namespace diomp
