// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Supervises a job, whether its ranks run on this machine (job) or on several hosts (head): handles
// failures, signals and time limits.
//
// Phases: running (also while the cause of a failure is determined, see first_cause.h); showing
// (ranks print their stacks after a timeout); ending (ranks have got a signal and have a second to
// end); killed (SIGKILL).
#pragma once

#include "event_loop.h"
#include "first_cause.h"
#include "options.h"
#include "output_hub.h"
#include "own_process.h"
#include "rank_tracker.h"
#include "report.h"
#include "services/device_services.h"

#include <memory>
#include <optional>
#include <string>

namespace diomp::run {

class supervisor {
public:
    explicit supervisor(run_options options);
    virtual ~supervisor();
    supervisor(const supervisor &) = delete;
    supervisor &operator=(const supervisor &) = delete;

    /// Runs the job. Blocks until no process of the job is left. Returns diomp-run's exit status.
    int run();

protected:
    enum class phase { running, showing, ending, killed };

    // Implemented by job and head.
    virtual status set_up() = 0;
    virtual status start() = 0;
    [[nodiscard]] virtual bool finished() const = 0;
    /// Sends the signal to the ranks, and SIGKILL after a grace period. `notify`: also closes the
    /// liveness pipe, which processes watch for the end of the job.
    virtual void end_ranks(int signal, bool notify) = 0;
    virtual void kill_ranks() = 0;
    /// Asks all ranks to print their stacks. Calls stacks_done() when they have, or will not.
    virtual void request_stacks() = 0;
    /// Sends the signal to all ranks, without further effect.
    virtual void signal_ranks(int signal) = 0;
    virtual void on_child(pid_t pid) = 0;
    virtual void on_continued() = 0;
    /// Ends all processes of the job that are left. Called once, before the last output.
    virtual void clean_up() = 0;
    /// Returns "rank 3 on b (pid 17, ./app)".
    [[nodiscard]] virtual std::string describe_rank(int rank) const = 0;
    /// Called after each batch of events.
    virtual void after_events() {}
    /// Handles packets and exits of ranks whose events have not been delivered yet. Calls
    /// on_ranks_polled() when all have been handled.
    virtual void poll_ranks() = 0;

    // Called by job and head.
    [[nodiscard]] phase now() const { return phase_; }
    enum class stacks { hidden, shown };
    /// Ends the job at once; only the first failure counts. An empty message is not printed.
    /// stacks::shown: all ranks print their stacks first.
    void fail(int exit_status, const std::string &message, stacks wanted = stacks::hidden);
    /// Records a failure of a rank. Ends the job once the first cause is known.
    void fail_rank(int rank, failure what);
    void fail_aborted(int rank, int code);
    void fail_given_up(int rank, int code);
    void fail_exited(int rank, const exit_info &how);
    void note_loss(int rank, std::optional<int> peer);
    void note_closed(int rank);
    void note_finalized(int rank);
    void on_ranks_polled();
    void stacks_done();
    /// Reports, also with --quiet, why the job cannot start, and ends it.
    void fail_start(int exit_status, const error &why);
    void check_premature_exit();
    void end(int signal, bool notify);
    void kill();

    run_options options_;
    std::string host_;
    std::string job_id_;
    rlimit original_open_files_{};
    std::unique_ptr<event_loop> loop_;
    std::unique_ptr<signal_port> signals_;
    std::unique_ptr<output_hub> output_;
    rank_tracker rank_tracker_;
    std::optional<int> exit_status_; ///< set by the first failure
    /// [rank] DIOMP_REMOTE_DEVICES; empty without --remote-devices.
    std::vector<std::string> remote_devices_;

private:
    status set_up_common();
    /// Starts the services of --remote-devices. Blocks until they listen or the job fails.
    status start_services();
    services_plan plan_services();
    void stop_services();
    void on_signal(const signalfd_siginfo &info);
    void on_timeout();
    void show_and_end(int signal, bool notify);
    void report_cause();
    void on_cause_timer();
    [[nodiscard]] std::string describe_abort(int rank, int code) const;

    first_cause causes_;
    first_cause::cause_wait cause_wait_ = first_cause::cause_wait::reports;
    std::unique_ptr<timer> cause_timer_;
    bool poll_requested_ = false;     ///< call poll_ranks() after the batch
    bool is_polled_ = false;          ///< poll_ranks() was requested
    bool has_reports_ = false;        ///< on_ranks_polled() was called
    bool is_short_wait_over_ = false; ///< min_cause_wait_s is over
    std::unique_ptr<timer> timeout_;
    std::unique_ptr<timer> stacks_limit_;
    int end_signal_ = 0; ///< signal to send after the stacks
    bool end_notifies_ = false;
    std::unique_ptr<device_services> services_;
    phase phase_ = phase::running;
};

/// Returns the exit status of an aborted job: the low 8 bits of the code, as exit() does.
[[nodiscard]] int abort_status(int code);

} // namespace diomp::run
