// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The end of a job, step by step: its ranks print their stacks if that is wanted, get a signal, and
// are killed.
#pragma once

#include "event_loop.h"

#include <functional>
#include <memory>

namespace diomp::run {

/// Acts on all ranks of a job, whether they run on this machine or on several hosts.
class rank_control {
public:
    virtual ~rank_control() = default;
    /// Sends the signal to the ranks, and SIGKILL after a grace period. `notify`: also closes the
    /// liveness pipe, which processes watch for the end of the job.
    virtual void end_ranks(int signal, bool notify) = 0;
    virtual void kill_ranks() = 0;
    /// Forwards a signal to all ranks (rank_terminator::forward()).
    virtual void signal_ranks(int signal) = 0;
    /// Asks all ranks to print their stacks. Calls job_end::on_stacks_done() when they have, or
    /// will not.
    virtual void request_stacks() = 0;
};

class job_end {
public:
    /// `on_begin` is called when the job's end begins, and by each further step.
    static result<std::unique_ptr<job_end>> create(event_loop &loop, rank_control &ranks,
                                                   std::function<void()> on_begin);

    /// Returns whether the job's end has not begun.
    [[nodiscard]] bool is_running() const { return phase_ == phase::running; }
    /// Asks for the stacks first, for a limited time.
    void show_and_end(int signal, bool notify);
    void on_stacks_done();
    void end(int signal, bool notify);
    void kill();

private:
    enum class phase {
        running, ///< also while the cause of a failure is determined (rank_failures)
        showing, ///< ranks print their stacks
        ending,  ///< ranks have got a signal and have a second to end
        killed,
    };
    job_end(rank_control &ranks, std::function<void()> on_begin)
        : ranks_(ranks), on_begin_(std::move(on_begin)) {}
    void enter(phase next);

    rank_control &ranks_;
    std::function<void()> on_begin_;
    phase phase_ = phase::running;
    int signal_ = 0; ///< to send after the stacks
    bool notify_ = false;
    std::unique_ptr<timer> stacks_limit_;
};

} // namespace diomp::run
