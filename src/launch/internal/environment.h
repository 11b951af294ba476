// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Protection against inherited launcher variables.
//
// Launchers describe a rank in environment variables, which child processes inherit: a program
// started by a rank would join the job as that rank. So a rank that has joined sets a mark that
// names the launch, and its descendants ignore the variables of a launch that the mark names. A
// launcher started by a descendant sets new values, which the mark does not name, so they are used.
#pragma once

#include "base/result.h"

#include <functional>
#include <string>

namespace diomp::launch {

/// Looks up a variable: getenv(), or a table in tests.
using environment = std::function<const char *(const char *)>;

/// The variable that holds the mark; not a setting.
inline constexpr const char *joined_variable = "DIOMP_LAUNCH_JOINED";

/// Names the PMIx namespace and the Slurm task that the environment describes; empty if none.
[[nodiscard]] std::string launch_mark(const environment &lookup);

/// Returns the environment without the variables of a launch that an ancestor has joined.
[[nodiscard]] environment without_inherited(environment lookup);

/// Sets the mark in this process's environment, for its descendants.
void mark_joined(const environment &lookup);

/// The variable that names the process that has joined and its rank. A program that this process
/// executes later detects by it that the process has joined before.
inline constexpr const char *process_variable = "DIOMP_LAUNCH_PROCESS";

/// Sets process_variable in this process's environment.
void mark_process(int rank, int size);

/// An error in a program that has replaced, by exec, a program that had joined a job: the other
/// ranks hold addresses and connections of the old one.
[[nodiscard]] status check_is_first_program(const environment &lookup);

} // namespace diomp::launch
