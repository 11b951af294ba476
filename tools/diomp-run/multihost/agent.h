// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-run on one of several hosts: runs the host's ranks for the head.
#pragma once

#include "agent_exchange.h"
#include "core/node.h"
#include "core/own_process.h"
#include "head_link.h"
#include "input_pipe.h"
#include "output_relay.h"

#include <algorithm>
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
    enum class phase {
        serving,
        stopping, ///< no more ranks are started
        ending,   ///< the ranks have been sent a signal to end as well
    };

    status set_up();
    status prepare(agent_setup setup, int &exit_status);
    status start_ranks();
    result<rank_descriptors> open_descriptors(int rank);
    void report_failure(int exit_status, const error &why);
    void stop() { phase_ = std::max(phase_, phase::stopping); }
    void on_signal(const signalfd_siginfo &info);
    void clean_up();

    void on_frame(frame_link &from, std::string_view bytes) override;
    void on_control_frame(frame_type type, frame_reader &frame);
    void on_disconnect(frame_link &from, const std::string &why) override;

    void on_hello(int rank, pid_t pid) override;
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

    int index_ = 0; ///< of this host
    agent_setup setup_;
    std::unique_ptr<event_loop> loop_;
    std::unique_ptr<signal_port> signals_;
    std::unique_ptr<head_link> head_;
    std::unique_ptr<node> node_;
    std::unique_ptr<output_relay> output_;
    std::unique_ptr<input_pipe> input_;
    std::unique_ptr<agent_exchange> exchange_;
    node_plan plan_; ///< until the start of the ranks
    phase phase_ = phase::serving;
};

/// The main function of `diomp-run --agent`.
int run_agent();

} // namespace diomp::run
