// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What diomp-run decides, whether its ranks run here (job) or on other hosts (head).
//
// Phases: running (also while a failure is known and its cause is looked for: first_cause.h);
// showing (ranks show their stacks, since the job has waited in vain); ending (ranks have got a
// signal and a second to follow it); killed (SIGKILL).
#pragma once

#include "attendance.h"
#include "device_services.h"
#include "event_loop.h"
#include "first_cause.h"
#include "options.h"
#include "output_hub.h"
#include "own_process.h"
#include "report.h"

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

    /// Blocks until no process of the job is left. diomp-run's exit status.
    int run();

protected:
    enum class phase { running, showing, ending, killed };

    // What the two kinds do in their own way.
    virtual status set_up() = 0;
    virtual status start() = 0;
    [[nodiscard]] virtual bool over() const = 0;
    /// The signal and its consequences. `tell`: processes that watch for the end of the job learn
    /// it now, and not only by the signal.
    virtual void end_ranks(int signal, bool tell) = 0;
    virtual void kill_ranks() = 0;
    /// Asks all ranks for their stacks; stacks_over() when they have shown them or will not.
    virtual void ask_stacks() = 0;
    /// No more than the signal.
    virtual void signal_ranks(int signal) = 0;
    virtual void on_child(pid_t pid) = 0;
    virtual void on_continued() = 0;
    /// No process of the job is left afterwards. Called once, before the last output.
    virtual void clean_up() = 0;
    /// "rank 3 on b (pid 17, ./app)".
    [[nodiscard]] virtual std::string name_rank(int rank) const = 0;
    /// After each batch of events.
    virtual void after_events() {}
    /// Gathers what has happened at ranks of which no event has come yet; all_ranks_seen() follows.
    virtual void look_at_ranks() = 0;

    // For them to use.
    [[nodiscard]] phase now() const { return phase_; }
    enum class stacks { hidden, shown };
    /// Ends the job at once; only the first failure counts. An empty message says nothing. With the
    /// stacks of all ranks before if they tell something.
    void fail(int exit_status, const std::string &message, stacks wanted = stacks::hidden);
    /// What ranks report of themselves. Ends the job once its first cause is clear.
    void fail_rank(int rank, failure what);
    void fail_aborted(int rank, int code);
    void fail_given_up(int rank, int code);
    void fail_exited(int rank, const exit_info &how);
    void note_loss(int rank, std::optional<int> peer);
    void note_closed(int rank);
    void note_finalized(int rank);
    void all_ranks_seen();
    void stacks_over();
    /// What keeps a job from starting is said with --quiet too.
    void fail_start(int exit_status, const error &why);
    void check_attendance();
    void end(int signal, bool tell);
    void kill();

    run_options options_;
    std::string host_;
    std::string job_id_;
    rlimit original_open_files_{};
    std::unique_ptr<event_loop> loop_;
    std::unique_ptr<signal_port> signals_;
    std::unique_ptr<output_hub> output_;
    attendance attendance_;
    std::optional<int> exit_status_; ///< set by the first failure
    /// [rank], what each has of the devices of --remote-devices; empty without that.
    std::vector<std::string> remote_devices_;

private:
    status set_up_common();
    /// Starts the services of --remote-devices and waits until they listen, or the job fails.
    status start_services();
    services_plan plan_services();
    void stop_services();
    void on_signal(const signalfd_siginfo &info);
    void on_timeout();
    void show_and_end(int signal, bool tell);
    void judge();
    void on_patience_over();
    [[nodiscard]] std::string name_abort(int rank, int code) const;

    first_cause causes_;
    first_cause::patience patience_ = first_cause::patience::reports;
    std::unique_ptr<timer> patience_limit_;
    bool looks_ = false;       ///< look_at_ranks() is to be called
    bool is_asked_ = false;    ///< for what is known at ranks
    bool has_reports_ = false; ///< all_ranks_seen()
    bool is_settled_ = false;  ///< the shorter of the two times is over
    std::unique_ptr<timer> timeout_;
    std::unique_ptr<timer> stacks_limit_;
    int end_signal_ = 0; ///< what follows the stacks
    bool end_tells_ = false;
    std::unique_ptr<device_services> services_;
    phase phase_ = phase::running;
};

/// The exit status of a job that a rank has aborted: the low 8 bits of its code, as after exit().
[[nodiscard]] int abort_status(int code);

} // namespace diomp::run
