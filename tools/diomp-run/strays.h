// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Processes that ranks have started and left behind.
//
// /proc may describe another PID namespace than this process's (a container that sees the host's
// /proc), or may be missing. Its numbers are then those of unrelated processes. So a process counts
// as a child only if waitid() says so, and numbers found elsewhere in /proc are used only if /proc
// shows this process by its own number.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace diomp::run {

/// Whether the numbers in /proc are those of this process's PID namespace.
[[nodiscard]] bool proc_is_ours();

/// The process is a child of this one and has not been reaped; the kernel is asked.
[[nodiscard]] bool is_own_child(pid_t pid);

/// Children of this process: as it is a subreaper, orphans of ranks too. A /proc of an outer PID
/// namespace is asked by its own numbers. Without any, the kernel is asked about every number that
/// a younger process may have.
[[nodiscard]] std::vector<pid_t> own_children();

/// Kills and reaps all children but `except` until none is left, for at most `limit_s`. Needs
/// SIGCHLD blocked. False if some are left.
[[nodiscard]] bool kill_and_reap_children(pid_t except, double limit_s);

/// Kills every process of this user that was started with `mark` (NAME=VALUE) in its environment,
/// until none is found: those of this process's PID namespace. Does nothing without a /proc that
/// shows this process.
void kill_marked_processes(const std::string &mark);

} // namespace diomp::run
