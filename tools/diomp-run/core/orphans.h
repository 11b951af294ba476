// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Orphans: processes that ranks have started and left behind.
//
// /proc may belong to another PID namespace than this process (a container that sees the host's
// /proc), or may be missing. Its process ids may then be those of unrelated processes. So a process
// counts as a child only if waitid() confirms it, and other process ids from /proc are used only if
// /proc shows this process under its own process id.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace diomp::run {

/// Returns whether /proc belongs to this process's PID namespace.
[[nodiscard]] bool proc_is_ours();

/// Returns whether the process is a child of this one that has not been reaped, by waitid().
[[nodiscard]] bool is_own_child(pid_t pid);

/// Returns the children of this process, including orphans of ranks, since it is a subreaper.
/// Process ids of a /proc of an outer PID namespace are translated. Without /proc, every process id
/// that a younger process may have is tried.
[[nodiscard]] std::vector<pid_t> own_children();

/// Kills and reaps all children except `except` until none is left. Blocks for at most `limit_s`.
/// SIGCHLD must be blocked. Returns false if some are left.
[[nodiscard]] bool kill_and_reap_children(pid_t except, double limit_s);

/// Kills all processes of this user and PID namespace that have `mark` (NAME=VALUE) in their
/// initial environment, until none is found. Does nothing if /proc does not show this process.
void kill_marked_processes(const std::string &mark);

} // namespace diomp::run
