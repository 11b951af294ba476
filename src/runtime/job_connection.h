// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How this rank communicates with the job: launcher, arena, conduit and messages. Reports lost
// peers, and ends the job after a failure.
#pragma once

#include "launch/launch.h"
#include "runtime/internal/modules.h"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace diomp {
enum class error_policy;
}

namespace diomp::runtime {

/// Any thread, except open, stop and close.
class job_connection {
public:
    /// The settings must outlive this object.
    job_connection(const settings &values, std::unique_ptr<launch::launcher> launcher);
    ~job_connection();

    /// Creates arena, conduit and messages; the engine is not started. Collective.
    status open();
    /// Stops the progress thread.
    void stop();
    /// Stops, closes the conduit and signs off at the launcher. Collective.
    status close();
    /// Replaces the destructor if the process ends while threads are still in calls: see
    /// conduit::freeze().
    void freeze();
    /// Hands the arena over, so that it stays mapped after the runtime has ended: inline puts and
    /// gets are not tracked and may still be copying. Call before the destructor.
    [[nodiscard]] std::unique_ptr<transport::arena> keep_arena();
    /// Whether the loss of a peer ends the job or fails all waits; at first as DIOMP_ERRORS says.
    void set_errors(error_policy policy) { errors_.store(policy); }
    /// A call returns OMPX_ERR_PEER to the program, which may be news that another rank has told
    /// this one: what the program does because of it is no failure of its own.
    void note_peer_error() noexcept;
    /// Ends the job because of `failure`, described by `message`; after a timeout or the loss of a
    /// peer with the stacks of all ranks. The caller exits afterwards.
    void give_up(int failure, int code, std::string_view message) noexcept;

    [[nodiscard]] const launch::job_info &job() const { return launcher_->info(); }
    [[nodiscard]] launch::launcher &launcher() { return *launcher_; }
    [[nodiscard]] transport::arena &arena() { return *arena_; }
    [[nodiscard]] offload::preregistered_segments &preregistered() { return *preregistered_; }
    [[nodiscard]] transport::conduit &transport() { return *conduit_; }
    /// The names of the node transport and the network: "shm+tcp".
    [[nodiscard]] const std::string &conduit_name() const;
    /// Whether the ranks of a node do not load each other's memory; the same on all ranks.
    [[nodiscard]] bool has_forced_network() const;
    [[nodiscard]] messaging::engine &engine() { return *engine_; }
    [[nodiscard]] messaging::call_service &calls() { return *calls_; }
    /// Chooses the algorithms of collectives, alike on all ranks; null: the built-in rules do.
    [[nodiscard]] const coll::algorithm_source *algorithms() const { return algorithms_.get(); }
    /// Whether rank 0, and so the job, has remote devices.
    [[nodiscard]] bool has_remote_devices() const { return facts_.has_remote_devices; }
    /// More ranks than cores: ranks share cores, so every wait costs a context switch. The same on
    /// all ranks of a node: algorithms depend on it.
    [[nodiscard]] bool is_oversubscribed() const { return facts_.is_oversubscribed; }

private:
    status create_arena();
    status create_conduit();
    /// Reports a dead peer: ends the job or fails all waits. Any thread.
    void on_peer_lost(world_rank peer, std::string why);

    const settings &settings_;
    std::atomic<error_policy> errors_;
    std::atomic<bool> has_peer_error_{false};
    // Constructed in this order, destroyed in reverse.
    std::unique_ptr<launch::launcher> launcher_;
    std::unique_ptr<stacks::stack_reporter> stacks_;
    std::unique_ptr<transport::arena> arena_;
    std::shared_ptr<const coll::algorithm_source> algorithms_;
    struct {
        bool has_remote_devices = false;
        bool is_oversubscribed = false;
    } facts_;                                                        ///< set by open()
    std::unique_ptr<offload::preregistered_segments> preregistered_; ///< the conduit may use some
    std::unique_ptr<transport::conduit> conduit_;
    std::unique_ptr<messaging::engine> engine_;
    std::unique_ptr<messaging::call_service> calls_;
};

} // namespace diomp::runtime
