// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Starts one process of a rank: fork, and exec by hand, since posix_spawn cannot set a parent-death
// signal or an affinity.
//
// The caller does not wait for exec, as it would after vfork and posix_spawn: the child binds
// itself to processors before exec, so that the program never runs elsewhere, and a busy processor
// may keep it waiting for seconds. A fork of diomp-run costs some 0.1 ms more than vfork.
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
    std::vector<std::string> arguments;   ///< the first is the program's name as the user wrote it
    std::vector<std::string> environment; ///< NAME=VALUE
    int standard_input = -1;
    int standard_output = -1;
    int standard_error = -1;
    int inherited = -1; ///< a descriptor that stays open across exec, although it is close-on-exec
                        ///< here
    cpu_list cpus;      ///< empty: unbound
    original_signals signals;
    rlimit open_files{};
};

/// Where a child leaves why it could not execute its program: a page that both have.
class exec_outcome {
public:
    static result<exec_outcome> create();
    exec_outcome() = default;
    exec_outcome(exec_outcome &&other) noexcept;
    exec_outcome &operator=(exec_outcome &&other) noexcept;
    ~exec_outcome();

    void report(int error_number) const;
    /// 0: nothing has failed so far.
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

    /// -1: none has been started.
    [[nodiscard]] pid_t pid() const { return pid_; }
    /// Why the program was not executed. To be asked when the process has ended: it was no process
    /// of the program's then, whatever its exit status.
    [[nodiscard]] std::optional<error> start_failure() const;

private:
    pid_t pid_ = -1;
    exec_outcome outcome_;
    std::string path_;
};

/// The process leads a group of its own and is killed when diomp-run dies. Its signals have the
/// dispositions that diomp-run was started with (original_signals). Returns without waiting for the
/// program to be executed.
result<spawned_process> spawn(const spawn_request &request);

} // namespace diomp::run
