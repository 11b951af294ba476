// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A process that diomp-run has started and whose end is an event of the loop.
#pragma once

#include "event_loop.h"
#include "report.h"
#include "spawn.h"

namespace diomp::run {

class watched_process {
public:
    watched_process() = default;
    ~watched_process() { unwatch(); }
    watched_process(const watched_process &) = delete;
    watched_process &operator=(const watched_process &) = delete;

    status start(const spawn_request &request);
    /// Calls `on_exit` after the process has ended, until unwatch().
    status watch(event_loop &loop, std::function<void()> on_exit);
    void unwatch();
    [[nodiscard]] bool is_watched() const { return pidfd_.valid(); }

    /// Returns -1 if no process was started, or if it has been reaped.
    [[nodiscard]] pid_t pid() const { return process_.pid(); }
    /// Returns how the process has ended, nullopt if it has not or was not started.
    [[nodiscard]] std::optional<exit_info> exit() const;
    /// Returns the error of exec, if it failed. Call after the process has ended.
    [[nodiscard]] std::optional<error> start_failure() const { return process_.start_failure(); }
    /// Signals the process group that the process leads, if it was started.
    void signal_group(int signal) const;
    /// Reaps the process; blocks until it has ended. Returns the error of exec, if it failed.
    std::optional<error> reap();

private:
    spawned_process process_;
    unique_fd pidfd_;
    event_loop *loop_ = nullptr;
    event_loop::token token_ = event_loop::token::none;
};

} // namespace diomp::run
