// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of settings as text, as docs/settings.md and as JSON.
#pragma once

#include "base/result.h"
#include "config/settings.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace diomp::info {

/// Settings from the environment, and the DIOMP_ variables that are not settings.
struct environment {
    settings values;
    std::vector<std::string> unknown;
};
result<environment> read_environment();

/// Returns docs/settings.md, made from the table only, so it is equal on all machines.
std::string settings_markdown();
std::string settings_text(const settings &values);
/// Returns a line for each setting that differs from its default, or one that says that none does.
std::string set_text(const settings &values);
nlohmann::json settings_json(const settings &values);
/// Prints the settings without starting the runtime. Returns the exit status.
int print_settings(bool as_json);

} // namespace diomp::info
