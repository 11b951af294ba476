// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What was built into this installation, and with what.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace diomp::info {

/// Returns a line per kind of part: "networks   shm, tcp, UCX 1.13.1".
std::string build_text();
/// Returns versions by part, null for parts that are not built in.
nlohmann::json build_json();
/// Prints the build without starting the runtime. Returns the exit status.
int print_build(bool as_json);

} // namespace diomp::info
