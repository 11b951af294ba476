// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Levels of the log, for all messages and by component.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace diomp {

enum class log_level { off, error, warn, info, debug };

/// Names that DIOMP_LOG takes: modules of src/ and folders within them.
inline constexpr std::array<std::string_view, 35> log_components{
    "api",       "base",        "cart",   "channels", "coll",      "config",  "cuda",
    "device",    "device_coll", "gasnet", "gaspi",    "group",     "hip",     "host",
    "kernels",   "launch",      "local",  "memory",   "messaging", "offload", "pmi",
    "pmix",      "remote",      "rma",    "runtime",  "secure",    "service", "shm",
    "singleton", "stacks",      "sync",   "tcp",      "transport", "ucx",     "vendor"};

constexpr bool is_log_component(std::string_view name) {
    for (std::string_view const each : log_components) {
        if (each == name) {
            return true;
        }
    }
    return false;
}

/// The component of a source file: its folder below src/, without internal/ and common/, as
/// "transport/tcp"; "" outside src/.
constexpr std::string_view component_of(std::string_view path) {
    constexpr std::string_view root = "/src/";
    auto const end = path.rfind('/');
    if (end == std::string_view::npos) {
        return {};
    }
    path = path.substr(0, end);
    if (path.starts_with(root.substr(1))) {
        path.remove_prefix(root.size() - 1);
    } else if (auto const begin = path.rfind(root); begin != std::string_view::npos) {
        path.remove_prefix(begin + root.size());
    } else {
        return {};
    }
    // The project itself may lie below another folder of that name.
    if (!is_log_component(path.substr(0, path.find('/')))) {
        return {};
    }
    for (std::string_view const hidden : {"/internal", "/common"}) {
        if (path.ends_with(hidden)) {
            path.remove_suffix(hidden.size());
        }
    }
    return path;
}

struct log_levels {
    struct component_level {
        std::string component; ///< one of log_components
        log_level level = log_level::warn;
        bool operator==(const component_level &) const = default;
    };

    log_level standard = log_level::warn;
    std::vector<component_level> components; ///< a later one takes precedence

    log_levels() = default;
    log_levels(log_level all) : standard(all) {}
    bool operator==(const log_levels &) const = default;

    /// The highest level of any component.
    [[nodiscard]] log_level highest() const;
    /// Level of a component as component_of() gives it. A rule for "tcp" or for "transport" applies
    /// to "transport/tcp".
    [[nodiscard]] log_level of(std::string_view component) const;
};

} // namespace diomp
