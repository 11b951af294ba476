// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of settings, for people, for docs/settings.md and for programs.
#pragma once

#include "base/result.h"
#include "base/settings.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace diomp::info {

/// Settings as the environment has them, and the DIOMP_ variables that nobody knows.
struct environment {
    settings values;
    std::vector<std::string> unknown;
};
result<environment> read_environment();

/// docs/settings.md, from the table alone: the same on every machine.
std::string settings_markdown();
std::string settings_text(const settings &values);
nlohmann::json settings_json(const settings &values);
/// Without starting the runtime. Exit status.
int print_settings(bool as_json);

} // namespace diomp::info
