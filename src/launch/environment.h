// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a process may believe of its environment.
//
// Launchers describe a rank in variables, and variables are inherited: a program that a rank starts
// would take itself for that rank. So a rank that has joined leaves a mark that names the launch,
// and its descendants do not see what the mark names. A launcher started by a descendant sets new
// values, which the mark does not name, and they count.
#pragma once

#include "base/result.h"

#include <functional>
#include <string>

namespace diomp::launch {

/// getenv(), or a table of a test.
using environment = std::function<const char *(const char *)>;

/// Carries the mark; part of no setting.
inline constexpr const char *joined_variable = "DIOMP_LAUNCH_JOINED";

/// Names the PMIx namespace and the Slurm task that the environment describes; empty if none.
[[nodiscard]] std::string launch_mark(const environment &lookup);

/// The same environment without the variables of a launch that an ancestor has joined.
[[nodiscard]] environment without_inherited(environment lookup);

/// Leaves the mark in this process's environment, for its descendants.
void mark_joined(const environment &lookup);

/// Names the process that has joined, and as which rank: what it executes afterwards finds that a
/// rank has been there.
inline constexpr const char *process_variable = "DIOMP_LAUNCH_PROCESS";

/// Leaves that in this process's environment.
void mark_process(int rank, int size);

/// An error in a program that has replaced, by exec, one that had joined a job: the other ranks
/// hold addresses and connections of that one.
[[nodiscard]] status check_is_first_program(const environment &lookup);

} // namespace diomp::launch
