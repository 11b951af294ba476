// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The protocol log: what one member does in collective calls, with DIOMP_LOG=coll:debug. Its lines
// begin with "call N", the number of the call on its group between nodes, or name the rounds of the
// node's barrier. docs/collectives.md, "Protocol log", has an example.
#pragma once

#include "base/log.h"

#include <fmt/core.h>

#include <utility>

namespace diomp::group {

/// Costs the load of a variable that never changes while the program runs.
[[nodiscard]] inline bool logs_protocol() { return is_logged(log_level::debug, "coll"); }

/// The arguments are evaluated in any case; where they cost something, ask logs_protocol() first.
template <typename... Args>
void log_protocol(fmt::format_string<Args...> format, Args &&...args) {
    if (logs_protocol()) [[unlikely]] {
        write_log(log_level::debug, fmt::format(format, std::forward<Args>(args)...));
    }
}

} // namespace diomp::group
