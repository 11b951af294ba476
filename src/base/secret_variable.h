// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Environment variables that hold a secret.
#pragma once

#include <string>

namespace diomp {

/// Returns the value, "" if there is none, and removes the variable, also from the memory that
/// /proc/PID/environ shows. The caller erases the value after use. Call at the start of a process:
/// setenv() would have left further copies. One thread.
[[nodiscard]] std::string take_secret_variable(const char *name);

} // namespace diomp
