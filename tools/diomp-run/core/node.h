// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ranks of one machine: starts them, receives their packets and exits, and cleans up.
#pragma once

#include "event_loop.h"
#include "guard.h"
#include "node_plan.h"
#include "oom_counter.h"
#include "rank_terminator.h"
#include "stack_collector.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace diomp::run {

/// Events of the node's ranks. Ranks are world ranks.
class node_events : public link_events {
public:
    /// The rank has ended. Its earlier packets have been handled.
    virtual void on_exit(int rank, const exit_info &how) = 0;
    /// The rank's program could not be executed; diomp-run's exit status is status_cannot_execute.
    virtual void on_start_failure(int rank, const error &why) = 0;
    /// Follows stack_collector::request(): each rank has printed its stacks or will not. `silent`
    /// has a sentence about each rank that will not.
    virtual void on_stacks_done(const std::vector<std::string> &silent) = 0;
};

struct rank_descriptors {
    unique_fd in;
    unique_fd out;
    unique_fd err;
};

class node {
public:
    /// Makes this process the reaper of the ranks' orphans. `mark`: NAME=VALUE in the environment
    /// of all processes of this node and job.
    static result<std::unique_ptr<node>> create(event_loop &loop, node_events &events,
                                                const std::string &mark);
    node(const node &) = delete;
    node &operator=(const node &) = delete;

    /// Starts the ranks and returns without waiting for their programs. On failure some ranks may
    /// have been started.
    status start(node_plan plan, exchange_events &exchange,
                 const std::function<result<rank_descriptors>(int rank)> &descriptors);
    [[nodiscard]] const node_plan &plan() const { return plan_; }
    [[nodiscard]] pid_t pid(int rank) const { return at(rank).process.pid(); }
    /// Returns "rank 3 on b (pid 17, ./app)".
    [[nodiscard]] std::string describe_rank(int rank) const;
    /// Returns "rank 3 of 4 on b: pid 17, cpus 0-1".
    [[nodiscard]] std::string describe_placement(int rank) const;

    void send(int rank, const std::vector<shared_packet> &packets);
    void send_to_all(const std::vector<shared_packet> &packets);

    [[nodiscard]] stack_collector &stacks() { return *stacks_; }
    [[nodiscard]] rank_terminator &terminator() { return *terminator_; }
    /// Handles the end of ranks other than `except` that were killed by a signal, without waiting
    /// for their events: the failure of a rank may arrive before the end of the rank that caused
    /// it.
    void handle_killed(int except);
    /// Handles all packets and exits of ranks that are available, without waiting for their events.
    void poll();
    /// Reaps an ended child process that is not a rank. Call on SIGCHLD.
    void reap(pid_t pid);
    /// Returns whether all ranks have ended, or some are left even after SIGKILL.
    [[nodiscard]] bool finished() const { return ended_ == started_ || terminator_->gave_up(); }
    /// Kills processes that the ranks have left. Returns false if some cannot be killed.
    [[nodiscard]] bool clean_up();

private:
    node(event_loop &loop, node_events &events, guard guard_process)
        : loop_(loop), events_(events), guard_(std::move(guard_process)) {}
    [[nodiscard]] rank_process &at(int rank) {
        return ranks_[static_cast<std::size_t>(rank - plan_.first_rank)];
    }
    [[nodiscard]] const rank_process &at(int rank) const {
        return ranks_[static_cast<std::size_t>(rank - plan_.first_rank)];
    }
    status start_rank(int rank, exchange_events &exchange, const rank_descriptors &descriptors);
    void on_rank_exit(int rank);
    void on_stacks_done(const std::vector<stack_collector::silent_rank> &silent);

    event_loop &loop_;
    node_events &events_;
    guard guard_;
    node_plan plan_;
    std::optional<vfork_slots> vfork_slots_; ///< if there are many ranks
    oom_counter oom_;
    std::unique_ptr<stack_collector> stacks_;
    std::unique_ptr<rank_terminator> terminator_;
    std::vector<rank_process> ranks_; ///< [rank - first_rank]
    std::size_t started_ = 0;
    std::size_t ended_ = 0; ///< ranks whose exit is known
};

} // namespace diomp::run
