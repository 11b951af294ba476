// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The last net of a tool: what can fail is a result where it happens; what is not expected (memory,
// output that cannot be written by fmt) ends the tool with a sentence and not with std::terminate.
#pragma once

#include <cstdio>
#include <exception>

namespace diomp {

/// Exit status after a stray exception.
inline constexpr int status_stray_exception = 1;

/// Calls `body`, which returns the exit status of the tool `name`.
template <typename Body>
int run_tool(const char *name, const Body &body) noexcept {
    try {
        return body();
    } catch (const std::exception &stray) {
        std::fprintf(stderr, "%s: %s\n", name, stray.what());
    } catch (...) {
        std::fprintf(stderr, "%s: an exception of an unknown type\n", name);
    }
    return status_stray_exception;
}

} // namespace diomp
