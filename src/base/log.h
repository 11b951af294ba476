// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages of the runtime, one line each on standard error: "diomp: [rank@host] level: text".
#pragma once

#include "base/log_levels.h"

#include <fmt/core.h>

#include <atomic>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>

namespace diomp {

/// Called once at start-up (DIOMP_LOG). Before, warnings and errors are written.
void set_log(const log_levels &levels, std::string prefix);
/// The highest level of any component.
extern std::atomic<log_level> highest_log_level;
/// The second half of is_logged.
[[nodiscard]] bool is_component_logged(log_level level, std::string_view component);
/// True if a message of this level is written for a component as component_of() gives it.
[[nodiscard]] inline bool is_logged(log_level level, std::string_view component) {
    return level <= highest_log_level.load(std::memory_order_acquire) &&
           is_component_logged(level, component);
}
/// Writes one line with a single write(2), so that lines of several ranks do not mix. Any thread.
void write_log(log_level level, std::string_view text) noexcept;

/// The text of a message, checked at compile time, and the component whose source has it.
template <typename... Args>
struct log_format {
    template <typename Text>
    consteval log_format(const Text &format_text,
                         std::source_location where = std::source_location::current())
        : text(format_text), component(component_of(where.file_name())) {}

    fmt::format_string<Args...> text;
    std::string_view component;
};

/// Formats and writes a message if its component logs this level. Costs a load if no component
/// does.
template <typename... Args>
void log(log_level level, log_format<std::type_identity_t<Args>...> format, Args &&...args) {
    if (is_logged(level, format.component)) {
        write_log(level, fmt::format(format.text, std::forward<Args>(args)...));
    }
}

} // namespace diomp
