// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Processes that ranks have started and left behind.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace diomp::run {

/// Children of this process: as it is a subreaper, orphans of ranks too.
std::vector<pid_t> own_children();

/// Kills and reaps all children but `except` until none is left, for at most `limit_s`. Needs
/// SIGCHLD blocked. False if some are left.
bool kill_and_reap_children(pid_t except, double limit_s);

/// Kills every process of this user that was started with `mark` (NAME=VALUE) in its environment,
/// until none is found.
void kill_marked_processes(const std::string &mark);

} // namespace diomp::run
