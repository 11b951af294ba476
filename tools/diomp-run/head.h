// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A job on several hosts. For each host a remote shell starts diomp-run --agent, which connects
// back and runs the ranks there; what it tells is decided upon here.
//
// Memory: about 500 bytes and two descriptors (three while its remote shell runs) per host; per
// rank 13 bytes, its process id, and two sources of output lines (72 bytes each). Values take what
// ranks publish. A fence of n ranks on h hosts costs h messages each way.
#pragma once

#include "agent_protocol.h"
#include "base/secure/pending_connections.h"
#include "frame_link.h"
#include "guard.h"
#include "host_list.h"
#include "input_reader.h"
#include "listener.h"
#include "remote_shell.h"
#include "spawn.h"
#include "supervisor.h"
#include "value_store.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace diomp::run {

class head final : public supervisor, private frame_events {
public:
    /// `options.ranks` is the sum of the shares' ranks.
    head(run_options options, std::vector<host_share> shares);
    ~head() override;

private:
    using clock = std::chrono::steady_clock;
    enum class stage {
        waiting,   ///< its remote shell has not been started
        starting,  ///< until it connects
        connected, ///< until it is ready
        ready,     ///< the program is there; until all hosts are
        running,
        gone, ///< has said that it is done, or is lost
    };
    struct host {
        host_share share;
        stage at = stage::waiting;
        bool here = false; ///< needs no remote shell
        bool in_fence = false;
        bool shows = false;    ///< its ranks have been asked for their stacks, and are not done
        bool looks = false;    ///< has been asked for what it knows of its ranks
        spawned_process shell; ///< the remote shell; leads a group
        unique_fd shell_fd;
        event_loop::token shell_token = event_loop::token::none;
        std::size_t shell_output = 0; ///< output_hub's number
        std::unique_ptr<frame_link> link;
        clock::time_point heard;     ///< when it was started or heard last
        std::uint32_t unthanked = 0; ///< bytes of output used, of which the agent does not know
    };

    // head_start.cpp
    status set_up() override;
    status start() override;
    void start_more();
    status find_shell(int &exit_status);
    status start_agent(std::size_t index);
    status listen();
    void on_pending();
    void admit(secure::pending_connections::proven_connection from);
    void welcome(host &which);
    void on_ready(host &which);
    void on_shell_exit(std::size_t index);
    [[nodiscard]] std::string explain_shell_exit(const host &which, const exit_info &how) const;

    // head.cpp
    [[nodiscard]] bool over() const override;
    void end_ranks(int signal, bool tell) override;
    void kill_ranks() override;
    void signal_ranks(int signal) override;
    void ask_stacks() override;
    void look_at_ranks() override;
    void on_child(pid_t pid) override;
    void on_continued() override;
    void clean_up() override;
    [[nodiscard]] std::string name_rank(int rank) const override;
    void on_frame(frame_link &from, std::string_view bytes) override;
    void on_link_end(frame_link &from, const std::string &why) override;
    void on_tick();
    void on_deadline();
    void on_flow();
    void leave(host &which);
    void send_to_all(std::string_view frame);
    [[nodiscard]] const host &host_of(int rank) const;

    // head_frames.cpp
    void on_rank_frame(host &from, frame_type type, frame_reader &frame);
    void on_fence(host &from);
    void on_get(host &from, frame_reader &frame);
    void on_output(host &from, frame_reader &frame);
    void on_exited(int rank, frame_reader &frame);
    void on_stacks_over(host &from);
    void on_looked(host &from);
    void thank(host &which);

    named_settings settings_; ///< that ranks get of our environment
    double lost_after_s_;     ///< silence of an agent that counts as its end
    std::string program_;     ///< diomp-run on the hosts
    shell_command shell_;     ///< remote
    secure::secret secret_ = secure::secret::random(); ///< what agents and head prove to each other
    std::vector<std::pair<std::string, std::string>> addresses_; ///< listener::addresses
    std::optional<secure::pending_connections> pending_;         ///< until all hosts are ready
    event_loop::token pending_token_ = event_loop::token::none;
    std::unique_ptr<guard> guard_;
    std::unique_ptr<timer> tick_;
    std::unique_ptr<timer> deadline_; ///< of the end
    std::unique_ptr<input_reader> input_;
    std::vector<host> hosts_;
    std::vector<pid_t> pids_; ///< [rank], as far as known
    value_store values_;
    clock::time_point last_tick_;
    std::size_t next_to_start_ = 0;
    std::size_t starting_ = 0;  ///< hosts in that stage
    std::size_t ready_ = 0;     ///< hosts that have been
    std::size_t in_fence_ = 0;  ///< hosts
    std::size_t remaining_ = 0; ///< hosts that are not gone
    std::size_t shells_ = 0;    ///< remote shells that run
    bool gave_up_ = false;
};

} // namespace diomp::run
