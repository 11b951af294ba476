// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Starts a process with fork and exec: posix_spawn cannot set a parent-death signal or an affinity.
//
// The caller does not wait for exec, as it would with vfork or posix_spawn. The child binds itself
// to processors before exec, so that the program never runs on others, and may wait seconds for a
// busy processor. A fork of diomp-run costs about 0.1 ms more than vfork.
#pragma once

#include "base/result.h"
#include "base/signal_dispositions.h"
#include "cpu_layout.h"

#include <csignal>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace diomp::run {

struct spawn_request {
    std::string path;
    std::vector<std::string>
        arguments; ///< the first is the program's name as the user has written it
    std::vector<std::string> environment; ///< NAME=VALUE
    int standard_input = -1;
    int standard_output = -1;
    int standard_error = -1;
    int inherited = -1; ///< a descriptor that stays open across exec, although it is close-on-exec
                        ///< in this process
    cpu_list cpus;      ///< empty: unbound
    original_signals signals;
    rlimit open_files{};
};

/// A shared page in which a child reports why exec failed.
class exec_outcome {
public:
    static result<exec_outcome> create();
    exec_outcome() = default;
    exec_outcome(exec_outcome &&other) noexcept;
    exec_outcome &operator=(exec_outcome &&other) noexcept;
    ~exec_outcome();

    void report(int error_number) const;
    /// Returns the reported errno; 0 if nothing has failed so far.
    [[nodiscard]] int error_number() const;

private:
    explicit exec_outcome(int *page) : page_(page) {}
    int *page_ = nullptr;
};

class spawned_process {
public:
    spawned_process() = default;
    spawned_process(pid_t pid, exec_outcome outcome, std::string path)
        : pid_(pid), outcome_(std::move(outcome)), path_(std::move(path)) {}

    /// Returns -1 if no process was started.
    [[nodiscard]] pid_t pid() const { return pid_; }
    /// Returns the error of exec, if it failed. Call after the process has ended; its exit status
    /// does not come from the program then.
    [[nodiscard]] std::optional<error> start_failure() const;

private:
    pid_t pid_ = -1;
    exec_outcome outcome_;
    std::string path_;
};

/// Starts a process that leads a process group of its own and is killed when diomp-run dies. It
/// gets the signal dispositions that diomp-run was started with (original_signals). Returns without
/// waiting for exec.
result<spawned_process> spawn(const spawn_request &request);

} // namespace diomp::run
