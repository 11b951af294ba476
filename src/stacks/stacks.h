// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints the call stacks of the ranks of a job, after a timeout or on request.
#pragma once

#include "launch/launch.h"

#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace diomp::stacks {

/// Prints the call stacks of all threads of the program as one block of text on standard error.
/// Any thread.
void print_stacks(const launch::job_info &job) noexcept;
/// print_stacks() before the end of the job, once per process: later calls do nothing.
void print_last_stacks(const launch::job_info &job) noexcept;

/// Gives up after a timeout: the launcher requests the stacks of all ranks and ends the job. A
/// launcher that cannot do that aborts the job, after this rank's own stacks are printed if `own`.
/// The caller exits afterwards.
void give_up(launch::launcher &launcher, int code, std::string_view message, bool own) noexcept;

/// Prints the stacks when the launcher requests them, in a thread that sleeps until then.
class stack_reporter {
public:
    /// nullptr if this launcher never requests stacks.
    static std::unique_ptr<stack_reporter> start(launch::launcher &launcher);
    ~stack_reporter();
    stack_reporter(const stack_reporter &) = delete;
    stack_reporter &operator=(const stack_reporter &) = delete;

private:
    stack_reporter(launch::launcher &launcher, int stop_fd)
        : launcher_(launcher), stop_fd_(stop_fd) {}
    void serve();
    /// Prints the stacks if a byte or the end of file requests them. False: it was the end.
    bool reply();

    launch::launcher &launcher_;
    int stop_fd_; ///< an eventfd
    std::thread thread_;
};

} // namespace diomp::stacks
