// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is left to do when diomp-run itself is killed with SIGKILL. The kernel then kills its direct
// children (the parent-death signal), but not their children. The guard is a small process that
// holds one end of a pipe and wakes when the other end goes.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <string>
#include <sys/types.h>

namespace diomp::run {

class guard {
public:
    /// Forks. Call it before ranks are started. `mark` (NAME=VALUE) is in their environment.
    static result<guard> start(const std::string &mark);
    guard(guard &&other) noexcept;
    guard &operator=(guard &&) = delete;
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;
    /// Lets it act, unless dismiss() has been called.
    ~guard();
    /// Ends it without letting it act. Call when no process of the job is left.
    void dismiss();

    /// Puts a rank's process group under guard.
    void watch(pid_t group);
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    guard(pid_t pid, unique_fd pipe) : pid_(pid), pipe_(std::move(pipe)) {}

    pid_t pid_;
    unique_fd pipe_;
};

} // namespace diomp::run
