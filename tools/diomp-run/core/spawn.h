// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Starts a process with fork and exec: posix_spawn cannot set a parent-death signal or an affinity.
//
// The caller does not wait for exec, as it would with vfork or posix_spawn. The child binds itself
// to processors before exec, so that the program never runs on others, and may wait seconds for a
// busy processor. A fork of diomp-run costs about 0.1 ms more than vfork, and 1 ms more with the
// descriptors of a thousand ranks. So many ranks, which are not bound, start with vfork_slots.
#pragma once

#include "base/result.h"
#include "base/signal_dispositions.h"
#include "base/unique_fd.h"
#include "cpu_layout.h"

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace diomp::run {

/// Descriptors with low numbers, for children that begin with the memory and the descriptors of
/// this process (vfork): a child keeps these and closes all others at once, in time that does not
/// depend on their number. Other processes get no copies of them.
class vfork_slots {
public:
    static constexpr std::size_t num = 4; ///< the standard ones and an inherited one

    /// Call while few descriptors are open.
    static result<vfork_slots> create();
    [[nodiscard]] int operator[](std::size_t slot) const { return fds_[slot].get(); }
    [[nodiscard]] unsigned highest() const { return static_cast<unsigned>(fds_.back().get()); }
    /// Makes the slots copies of these descriptors; -1: of /dev/null.
    [[nodiscard]] status fill(const std::array<int, num> &with) const;

private:
    unique_fd null_;
    std::array<unique_fd, num> fds_; ///< ascending
};

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
    /// If not null: the caller waits for exec. Lives until then; for unbound processes only.
    const vfork_slots *slots = nullptr;
};

/// A shared page in which a child reports why exec failed.
class exec_outcome {
public:
    static result<exec_outcome> create();
    /// The outcome is known: errno, or 0 for success.
    explicit exec_outcome(int error_number = 0) : known_(error_number) {}
    exec_outcome(exec_outcome &&other) noexcept;
    exec_outcome &operator=(exec_outcome &&other) noexcept;
    ~exec_outcome();

    [[nodiscard]] int *page() const { return page_; }
    /// Returns the reported errno; 0 if nothing has failed so far.
    [[nodiscard]] int error_number() const;

private:
    explicit exec_outcome(int *page) : page_(page) {}
    int *page_ = nullptr;
    int known_ = 0;
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
/// waiting for exec, unless the request has slots.
result<spawned_process> spawn(const spawn_request &request);

} // namespace diomp::run
