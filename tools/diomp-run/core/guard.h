// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cleans up when diomp-run itself is killed with SIGKILL. The kernel then kills the direct children
// (parent-death signal), but not their children. The guard is a small process that reads from a
// pipe and kills the job's processes when diomp-run's end of the pipe is closed.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <string>
#include <sys/types.h>

namespace diomp::run {

class guard {
public:
    /// Forks the guard process. Call before ranks are started. `mark` (NAME=VALUE) is in the
    /// environment of the ranks.
    static result<guard> start(const std::string &mark);
    guard(guard &&other) noexcept;
    guard &operator=(guard &&) = delete;
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;
    /// Closes the pipe, so the guard kills the job's processes unless dismiss() was called.
    ~guard();
    /// Ends the guard process. Call when no process of the job is left.
    void dismiss();

    /// Adds a process group to those that the guard kills.
    void monitor(pid_t group);
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    guard(pid_t pid, unique_fd pipe) : pid_(pid), pipe_(std::move(pipe)) {}

    pid_t pid_;
    unique_fd pipe_;
};

} // namespace diomp::run
