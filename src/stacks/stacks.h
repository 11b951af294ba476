// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where every rank of a job is, for a job that has waited in vain.
#pragma once

#include "launch/launch.h"

#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace diomp::stacks {

/// The call stacks of all threads of the program as one block of text on standard error, once per
/// process: later calls do nothing. Any thread.
void show(const launch::job_info &job) noexcept;

/// Ends this rank's part in a job that has waited in vain: lets the launcher ask all ranks for
/// their stacks and end the job, or, where it cannot, shows this rank's own and aborts the job.
/// `own`: whether it shows its own then. The caller exits afterwards.
void give_up(launch::launcher &launcher, int code, std::string_view message, bool own) noexcept;

/// Shows the stacks when the launcher asks for it, in a thread that sleeps until then.
class watch {
public:
    /// nullptr if this launcher never asks.
    static std::unique_ptr<watch> start(launch::launcher &launcher);
    ~watch();
    watch(const watch &) = delete;
    watch &operator=(const watch &) = delete;

private:
    watch(launch::launcher &launcher, int stop_fd) : launcher_(launcher), stop_fd_(stop_fd) {}
    void serve();

    launch::launcher &launcher_;
    int stop_fd_; ///< an eventfd
    std::thread thread_;
};

} // namespace diomp::stacks
