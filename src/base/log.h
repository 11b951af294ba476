// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages of the runtime, one line each on standard error: "diomp: [rank@host] level: text".
#pragma once

#include "base/settings.h"

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace diomp {

/// Set once at start-up (DIOMP_LOG); warnings and errors before that.
void set_log(log_level level, std::string prefix);
[[nodiscard]] log_level current_log_level();
/// Writes one line with a single write(2), so that lines of several ranks do not mix. Any thread.
void write_log(log_level level, std::string_view text) noexcept;

template <typename... Args>
void log(log_level level, fmt::format_string<Args...> format, Args &&...args) {
    if (level <= current_log_level()) {
        write_log(level, fmt::format(format, std::forward<Args>(args)...));
    }
}

} // namespace diomp
