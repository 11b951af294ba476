// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Supervises a job, whether its ranks run on this machine (job) or on several hosts (head): start,
// services of remote devices, time limit, signals, output, end.
#pragma once

#include "event_loop.h"
#include "job_end.h"
#include "options.h"
#include "output_hub.h"
#include "own_process.h"
#include "rank_failures.h"
#include "services/device_services.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace diomp::run {

class supervisor : protected rank_control {
public:
    explicit supervisor(run_options options);
    ~supervisor() override;

    /// Runs the job. Blocks until no process of the job is left. Returns diomp-run's exit status.
    int run();

protected:
    // Implemented by job and head.
    virtual status set_up() = 0;
    virtual status start() = 0;
    [[nodiscard]] virtual bool finished() const = 0;
    virtual void on_child(pid_t pid) = 0;
    virtual void on_continued() = 0;
    /// Ends all processes of the job that are left. Called once, before the last output.
    virtual void clean_up() = 0;
    /// Returns "rank 3 on b (pid 17, ./app)".
    [[nodiscard]] virtual std::string describe_rank(int rank) const = 0;
    /// Handles packets and exits of ranks whose events have not been delivered yet. Calls
    /// rank_failures::on_polled() when all have been handled.
    virtual void poll_ranks() = 0;

    // Called by job and head.
    enum class stacks { hidden, shown };
    /// Ends the job at once; only the first failure counts. An empty message is not printed.
    /// stacks::shown: all ranks print their stacks first.
    void fail(int exit_status, const std::string &message, stacks wanted = stacks::hidden);
    void on_rank_exit(int rank, const exit_info &how);
    /// Reports, also with --quiet, why the job cannot start, and ends it.
    void fail_start(int exit_status, const error &why);

    run_options options_;
    std::string job_id_;
    rlimit original_open_files_{};
    std::unique_ptr<event_loop> loop_;
    std::unique_ptr<signal_port> signals_;
    std::unique_ptr<output_hub> output_;
    std::unique_ptr<rank_failures> failures_;
    std::unique_ptr<job_end> end_;
    std::optional<int> exit_status_; ///< set by the first failure
    /// [rank] DIOMP_REMOTE_DEVICES; empty without --remote-devices.
    std::vector<std::string> remote_devices_;

private:
    status set_up_common();
    /// Limits of the fences while the job starts, as the ranks' settings are.
    [[nodiscard]] launch::fence_limits start_limits() const;
    /// Starts the services of --remote-devices. Blocks until they listen or the job fails.
    status start_services();
    [[nodiscard]] services_plan plan_services() const;
    void stop_services();
    void on_signal(const signalfd_siginfo &info);

    std::unique_ptr<timer> timeout_;
    std::unique_ptr<device_services> services_;
};

} // namespace diomp::run
