// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Starts the agents, by a remote shell on hosts other than this machine.
#pragma once

#include "agent_protocol.h"
#include "core/guard.h"
#include "core/output_hub.h"
#include "host_table.h"
#include "remote_shell.h"

#include <functional>
#include <memory>
#include <string>

namespace diomp::run {

class agent_launcher {
public:
    /// Makes this process the reaper of the shells' orphans. `mark`: NAME=VALUE in the environment
    /// of the job. `common`: signals and limits of the shells. `on_failure` is called if a shell
    /// ends although its agent has not connected.
    static result<std::unique_ptr<agent_launcher>>
    create(event_loop &loop, host_table &hosts, output_hub &output, const host_options &options,
           const std::string &mark, spawn_request common,
           std::function<void(host &, const error &)> on_failure);

    /// Finds the remote shell, if a host needs one. On failure `exit_status` is set where
    /// diomp-run's exit status is not 1.
    status find_shell(int &exit_status);
    /// Starts the agent of a host and returns without waiting for it. Erases the secret. Returns
    /// "sh (pid 17)".
    result<std::string> start(host &which, agent_bootstrap bootstrap);
    /// Returns the number of running shells.
    [[nodiscard]] std::size_t running() const { return running_; }
    /// Returns whether the child process is one of this class, which only it may reap.
    [[nodiscard]] bool owns(pid_t pid) const;
    /// Kills the shells that are left, and collects their output.
    void clean_up();

private:
    agent_launcher(event_loop &loop, host_table &hosts, output_hub &output,
                   const host_options &options, guard guard_process, spawn_request common,
                   std::function<void(host &, const error &)> on_failure);
    void on_shell_exit(host &which);
    [[nodiscard]] std::string explain_exit(const host &which, const exit_info &how) const;

    event_loop &loop_;
    host_table &hosts_;
    output_hub &output_;
    const host_options &options_;
    guard guard_;
    spawn_request common_;
    std::function<void(host &, const error &)> on_failure_;
    shell_command shell_; ///< the remote shell
    std::size_t running_ = 0;
};

} // namespace diomp::run
