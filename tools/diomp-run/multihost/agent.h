// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-run on one of several hosts: runs the host's ranks for the head.
#pragma once

#include "agent_protocol.h"
#include "core/exchange.h"
#include "core/node.h"
#include "core/own_process.h"
#include "frame_link.h"
#include "input_pipe.h"
#include "output_relay.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace diomp::run {

class agent final : private node_events, private frame_events {
public:
    agent();
    ~agent() override;

    /// Runs the agent until its part of the job has ended. Blocks. Returns the exit status.
    int run();

private:
    using value_key = std::pair<int, std::string>; ///< owner, key

    status set_up();
    status prepare(agent_setup setup);
    status start_ranks();
    result<rank_descriptors> open_descriptors(int rank);
    void report_start(const status &started);
    void report_failure(int exit_status, const error &why);
    void on_signal(const signalfd_siginfo &info);
    void clean_up();

    void on_frame(frame_link &from, std::string_view bytes) override;
    void on_control_frame(frame_type type, frame_reader &frame);
    void on_disconnect(frame_link &from, const std::string &why) override;
    void on_fence_done(bool invalidate);
    void on_value(frame_reader &frame);

    void on_hello(int rank, pid_t pid) override;
    void on_entries(int rank, std::vector<launch::local::entry> entries) override;
    void on_fence(int rank) override;
    void on_get(int rank, int owner, std::string key) override;
    void on_finalize(int rank) override;
    void on_abort(int rank, int code) override;
    void on_give_up(int rank, int code) override;
    void on_loss(int rank, std::optional<int> peer) override;
    void on_closed(int rank) override;
    void on_stacks_shown(int rank) override;
    void on_stacks_done(const std::vector<std::string> &silent) override;
    void on_protocol_error(int rank, const std::string &what) override;
    void on_exit(int rank, const exit_info &how) override;
    void on_start_failure(int rank, const error &why) override;
    void send_rank(frame_type type, int rank);
    void send_abort(frame_type type, int rank, int code);

    agent_bootstrap bootstrap_;
    agent_setup setup_;
    rlimit original_open_files_{};
    std::unique_ptr<event_loop> loop_;
    std::unique_ptr<signal_port> signals_;
    std::unique_ptr<frame_link> head_;
    std::unique_ptr<timer> alive_;
    std::unique_ptr<timer>
        shutdown_timer_; ///< limits the wait for the head to close the connection
    std::unique_ptr<node> node_;
    std::unique_ptr<output_relay> output_;
    std::unique_ptr<input_pipe> input_;
    std::unique_ptr<exchange> exchange_;
    node_plan plan_;
    std::vector<launch::local::entry> deferred_entries_; ///< published in a fence that other hosts
                                                         ///< have not reached yet
    std::map<value_key, std::string> cache_;             ///< values of other hosts' ranks
    std::map<value_key, std::vector<int>> pending_gets_; ///< ranks that wait for a value
    int failure_status_ = 1;        ///< diomp-run's exit status if the start fails
    bool termination_sent_ = false; ///< the ranks have been sent a signal to end
    bool stopping_ = false;         ///< no more ranks are started
};

/// The main function of `diomp-run --agent`.
int run_agent();

} // namespace diomp::run
