// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ranks of one machine: starts them, hears them, signals them, and leaves nothing behind.
#pragma once

#include "cpu_layout.h"
#include "event_loop.h"
#include "guard.h"
#include "oom_counter.h"
#include "pipe.h"
#include "rank_link.h"
#include "report.h"
#include "spawn.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace diomp::run {

/// What happens on the node. Ranks are world ranks.
class node_events : public link_events {
public:
    /// The rank's packets that came before have been handled.
    virtual void on_exit(int rank, const exit_info &how) = 0;
    /// The rank's program could not be executed; diomp-run's exit status is status_cannot_execute.
    virtual void on_start_failure(int rank, const error &why) = 0;
    /// After ask_stacks(): every rank has shown its stacks or will not. `silent`: a sentence about
    /// each of those that will not.
    virtual void on_stacks_over(const std::vector<std::string> &silent) = 0;
};

struct node_plan {
    int first_rank = 0;
    int ranks = 0;
    int world_size = 0;
    std::string job_id;
    std::string host;
    std::string mark; ///< NAME=VALUE in the environment of all processes of this node and job
    std::vector<cpu_list> placement;         ///< [rank - first_rank]
    std::vector<std::string> remote_devices; ///< [rank - first_rank] DIOMP_REMOTE_DEVICES; or empty
    spawn_request common; ///< program, arguments, environment, mask and limits of every rank
};

struct rank_descriptors {
    unique_fd in;
    unique_fd out;
    unique_fd err;
};

class node {
public:
    /// Makes this process the one to which orphans of the ranks go. `mark`: see node_plan.
    static result<std::unique_ptr<node>> create(event_loop &loop, node_events &events,
                                                const std::string &mark);
    ~node();
    node(const node &) = delete;
    node &operator=(const node &) = delete;

    /// Returns without waiting for the ranks' programs. On failure ranks may have been started.
    status start(node_plan plan,
                 const std::function<result<rank_descriptors>(int rank)> &descriptors);
    [[nodiscard]] const node_plan &plan() const { return plan_; }
    [[nodiscard]] pid_t pid(int rank) const { return at(rank).process.pid(); }
    /// "rank 3 on b (pid 17, ./app)".
    [[nodiscard]] std::string name_rank(int rank) const;
    /// "rank 3 of 4 on b: pid 17, cpus 0-1".
    [[nodiscard]] std::string describe_placement(int rank) const;

    void send(int rank, const std::vector<shared_packet> &packets);
    void send_to_all(const std::vector<shared_packet> &packets);

    /// Signal, then SIGKILL to what is left a second later. `tell`: closes the watch pipe.
    void end(int signal, bool tell);
    void kill();
    void signal(int number);
    /// Asks all ranks for their stacks. on_stacks_over() follows: at once if no rank shows any,
    /// after stacks_limit_s at the latest.
    void ask_stacks();
    /// A rank has shown its stacks.
    void look_for_stacks();
    /// Handles the end of ranks that a signal has killed, other than `except`, before its event: a
    /// rank that fails since another one was killed may be heard first.
    void look_for_killed(int except);
    /// Handles everything that ranks have sent and how they have ended, before their events.
    void look();
    /// A child that is no rank has ended, as SIGCHLD says.
    void reap(pid_t pid);
    /// Every rank has ended, or they do not go away even after SIGKILL.
    [[nodiscard]] bool over() const { return ended_ == started_ || gave_up_; }
    /// Kills what the ranks have left behind. False if something does not go away.
    [[nodiscard]] bool clean_up();

private:
    struct rank_process {
        spawned_process process;
        unique_fd pidfd;
        event_loop::token token = event_loop::token::none;
        std::unique_ptr<rank_link> link;
        bool ended = false;
    };
    node(event_loop &loop, node_events &events, guard keeper)
        : loop_(loop), events_(events), guard_(std::move(keeper)) {}
    [[nodiscard]] rank_process &at(int rank) {
        return ranks_[static_cast<std::size_t>(rank - plan_.first_rank)];
    }
    [[nodiscard]] const rank_process &at(int rank) const {
        return ranks_[static_cast<std::size_t>(rank - plan_.first_rank)];
    }
    status start_rank(int rank, const rank_descriptors &descriptors);
    void on_rank_exit(int rank);
    [[nodiscard]] std::string explain_kill() const;
    void on_grace_over();
    void end_stacks();
    [[nodiscard]] std::string explain_silence(int rank) const;

    event_loop &loop_;
    node_events &events_;
    guard guard_;
    node_plan plan_;
    oom_counter oom_;
    std::uint64_t oom_kills_before_ = 0; ///< before the ranks' start
    /// Ranks hold the reading end; its end of file tells them that the job is over.
    pipe_ends watch_;
    /// Its end of file asks them for their stacks.
    pipe_ends stacks_;
    bool asks_stacks_ = false; ///< until all have answered
    std::unique_ptr<timer> stacks_limit_;
    std::unique_ptr<timer> grace_;
    std::vector<rank_process> ranks_; ///< [rank - first_rank]
    std::size_t started_ = 0;
    std::size_t ended_ = 0; ///< ranks whose exit is known
    bool killed_ = false;
    bool reaped_ = false;  ///< ranks' numbers may be somebody else's by now
    bool gave_up_ = false; ///< processes do not go away even after SIGKILL
};

/// Time to show stacks.
inline constexpr double stacks_limit_s = 1.0;
/// Time to follow a signal before SIGKILL.
inline constexpr double grace_s = 1.0;
/// Time for processes to go away after SIGKILL, which they do at once unless the kernel holds them.
inline constexpr double kill_limit_s = 5.0;

} // namespace diomp::run
