// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/log_levels.h"

#include <algorithm>

namespace diomp {
namespace {

/// True if `name` is one of the folders of the path `component`.
bool has_folder(std::string_view component, std::string_view name) {
    while (!component.empty()) {
        auto const end = std::min(component.find('/'), component.size());
        if (component.substr(0, end) == name) {
            return true;
        }
        component.remove_prefix(std::min(end + 1, component.size()));
    }
    return false;
}

} // namespace

log_level log_levels::highest() const {
    log_level found = standard;
    for (auto const &each : components) {
        found = std::max(found, each.level);
    }
    return found;
}

log_level log_levels::of(std::string_view component) const {
    log_level found = standard;
    for (auto const &each : components) {
        if (has_folder(component, each.component)) {
            found = each.level;
        }
    }
    return found;
}

} // namespace diomp
