// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A job on several hosts. For each host a remote shell starts diomp-run --agent, which connects
// back, runs the ranks of its host and reports to the head. The head makes all decisions.
//
// Memory per host: about 500 bytes and two descriptors (three while its remote shell runs). Memory
// per rank: 13 bytes, its process id, and two sources of output lines (72 bytes each), plus the
// values that the ranks publish. A fence of n ranks on h hosts costs h messages each way.
#pragma once

#include "agent_launcher.h"
#include "agent_listener.h"
#include "agent_protocol.h"
#include "core/supervisor.h"
#include "head_exchange.h"
#include "head_output.h"
#include "host_monitor.h"
#include "host_request.h"
#include "host_table.h"
#include "input_reader.h"

#include <memory>
#include <string>
#include <vector>

namespace diomp::run {

class head final : public supervisor, private frame_events {
public:
    /// `options.ranks` is the sum of the blocks' ranks.
    head(run_options options, std::vector<rank_block> blocks);
    ~head() override;

private:
    // head_start.cpp
    status set_up() override;
    status start() override;
    void start_more();
    void accept_agent(secure::pending_connections::proven_connection from);
    void send_setup(host &which);
    void on_ready(host &which);

    // head.cpp
    [[nodiscard]] bool finished() const override;
    void end_ranks(int signal, bool notify) override;
    void kill_ranks() override;
    void signal_ranks(int signal) override;
    void request_stacks() override { stacks_.send(); }
    void poll_ranks() override { polls_.send(); }
    void on_child(pid_t pid) override;
    void on_continued() override;
    void clean_up() override;
    [[nodiscard]] std::string describe_rank(int rank) const override;
    void on_frame(frame_link &from, std::string_view bytes) override;
    void on_disconnect(frame_link &from, const std::string &why) override;
    void on_silent(host &which, double limit_s);
    void on_deadline();
    void lose(host &which, const std::string &why);
    void fail_host_start(host &which, const error &why);
    void mark_gone(host &which);
    void mark_unstarted_gone();
    void on_rank_frame(host &from, frame_type type, frame_reader &frame);

    named_settings settings_; ///< forwarded to the ranks' environment
    host_table hosts_;
    head_exchange exchange_;
    host_request stacks_;
    host_request polls_;
    std::unique_ptr<agent_launcher> launcher_;
    std::unique_ptr<agent_listener> listener_;
    std::unique_ptr<host_monitor> monitor_;
    std::unique_ptr<timer> deadline_; ///< for the end of the job
    std::unique_ptr<input_reader> input_;
    std::unique_ptr<head_output> ranks_output_;
    bool gave_up_ = false;
};

} // namespace diomp::run
