// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A job on several hosts. For each host a remote shell starts diomp-run --agent, which connects
// back, runs the ranks of its host and reports to the head. The head makes all decisions.
//
// Memory per host: about 500 bytes and two descriptors (three while its remote shell runs). Memory
// per rank: 13 bytes, its process id, and two sources of output lines (72 bytes each), plus the
// values that the ranks publish. A fence of n ranks on h hosts costs h messages each way.
#pragma once

#include "agent_protocol.h"
#include "base/secure/pending_connections.h"
#include "core/guard.h"
#include "core/spawn.h"
#include "core/supervisor.h"
#include "core/value_store.h"
#include "frame_link.h"
#include "host_list.h"
#include "input_reader.h"
#include "listener.h"
#include "remote_shell.h"

#include <chrono>
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
    using clock = std::chrono::steady_clock;
    enum class stage {
        waiting,   ///< the remote shell has not been started
        starting,  ///< until the agent connects
        connected, ///< until the agent is ready
        ready,     ///< the program was found; until all hosts are ready
        running,
        gone, ///< the agent is done or lost
    };
    struct host {
        rank_block block;
        stage state = stage::waiting;
        bool is_local = false; ///< this machine: no remote shell needed
        bool in_fence = false;
        bool stacks_pending = false; ///< its ranks have not all printed their stacks
        bool poll_pending = false;   ///< its agent has not answered `poll`
        spawned_process shell;       ///< the remote shell; leads a process group
        unique_fd shell_fd;
        event_loop::token shell_token = event_loop::token::none;
        std::size_t shell_output = 0; ///< number of its pipe in output_hub
        std::unique_ptr<frame_link> link;
        clock::time_point last_received; ///< time of the last frame, or of the start
        std::uint32_t unacked_bytes = 0; ///< bytes of output written but not acknowledged
    };

    // head_start.cpp
    status set_up() override;
    status start() override;
    void start_more();
    status find_shell(int &exit_status);
    status start_agent(std::size_t index);
    status listen();
    void on_pending();
    void accept_agent(secure::pending_connections::proven_connection from);
    void send_setup(host &which);
    void on_ready(host &which);
    void on_shell_exit(std::size_t index);
    [[nodiscard]] std::string explain_shell_exit(const host &which, const exit_info &how) const;

    // head.cpp
    [[nodiscard]] bool finished() const override;
    void end_ranks(int signal, bool notify) override;
    void kill_ranks() override;
    void signal_ranks(int signal) override;
    void request_stacks() override;
    void poll_ranks() override;
    void on_child(pid_t pid) override;
    void on_continued() override;
    void clean_up() override;
    [[nodiscard]] std::string describe_rank(int rank) const override;
    void on_frame(frame_link &from, std::string_view bytes) override;
    void on_disconnect(frame_link &from, const std::string &why) override;
    void on_tick();
    void on_deadline();
    void on_flow_change();
    void mark_gone(host &which);
    void send_to_all(std::string_view frame);
    [[nodiscard]] const host &host_of(int rank) const;

    // head_frames.cpp
    void on_rank_frame(host &from, frame_type type, frame_reader &frame);
    void on_fence(host &from);
    void on_get(host &from, frame_reader &frame);
    void on_output(host &from, frame_reader &frame);
    void on_exited(int rank, frame_reader &frame);
    void on_stacks_done(host &from);
    void on_polled(host &from);
    void send_output_ack(host &which);

    named_settings settings_; ///< forwarded to the ranks' environment
    double peer_timeout_s_;   ///< silence after which an agent counts as lost
    std::string program_;     ///< path of diomp-run on the hosts
    shell_command shell_;     ///< the remote shell
    secure::secret secret_ = secure::secret::random(); ///< proves the identity of head and agents
    std::vector<std::pair<std::string, std::string>> addresses_; ///< listener::addresses
    std::optional<secure::pending_connections> pending_;         ///< until all hosts are ready
    event_loop::token pending_token_ = event_loop::token::none;
    std::unique_ptr<guard> guard_;
    std::unique_ptr<timer> tick_;
    std::unique_ptr<timer> deadline_; ///< for the end of the job
    std::unique_ptr<input_reader> input_;
    std::vector<host> hosts_;
    std::vector<pid_t> pids_; ///< [rank]; -1: not known
    value_store values_;
    clock::time_point last_tick_;
    std::size_t next_to_start_ = 0;
    std::size_t starting_ = 0;  ///< hosts in stage `starting`
    std::size_t ready_ = 0;     ///< hosts that have reported `ready`
    std::size_t in_fence_ = 0;  ///< hosts whose ranks are in the fence
    std::size_t remaining_ = 0; ///< hosts that are not gone
    std::size_t shells_ = 0;    ///< running remote shells
    bool gave_up_ = false;
};

} // namespace diomp::run
