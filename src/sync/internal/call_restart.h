// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Brings the members of a node barrier into step again after a call of several rounds that some of
// them have given up.
//
// Such members would be in different rounds. So one that gives up a call goes on from a round that
// depends on the number of the call only, and tells the others: a member that waits for it in an
// earlier round fails, too, and does the same. The next call of all that have failed in the same
// call begins with a wait for all of them there (restart): then no member reads what another one
// has published before.
#pragma once

#include "base/result.h"
#include "sync/internal/barrier_area.h"

#include <cstdint>
#include <string>

namespace diomp::messaging {
class engine;
}

namespace diomp::sync {

/// equal: after a timeout, members that are late still complete the rounds of the call, since each
/// member makes all of them in any case. several: a member that fails makes no further ones.
enum class call_rounds : bool { equal, several };

/// One per node_barrier, by the same thread. `epoch` is the barrier's.
class call_restart {
public:
    call_restart(messaging::engine &engine, const barrier_areas &areas)
        : engine_(engine), areas_(areas) {}

    /// Calls that consist of several rounds; a round outside of them is a call of its own.
    [[nodiscard]] bool is_in_call() const { return is_in_call_; }
    void begin_call(call_rounds made);
    void end_call();
    /// The call in progress has several rounds, though it began as one that has equal ones.
    void note_several_rounds() { has_several_rounds_ = is_in_call_; }

    /// Another member has given up this call or an earlier one, so it is not to be waited for.
    [[nodiscard]] bool is_given_up(std::uint64_t epoch) const {
        return areas_.own().latest_restart.load(std::memory_order_acquire) > epoch;
    }
    /// Whether a wait that ends so must fail: in a call of several rounds the others will not make
    /// the next ones, and their buffers may have another use already. In one round a late member
    /// still gets what the others have published.
    [[nodiscard]] bool must_give_up(bool has_arrived, std::uint64_t epoch) const {
        return (!has_arrived || has_several_rounds_) && is_given_up(epoch);
    }
    /// Why. This member gives it up, too.
    error given_up_error(std::uint64_t epoch);
    /// A wait in the call in progress has failed with this code.
    void note_failure(int code) {
        has_failed_ = true;
        code_ = code;
    }
    /// This member does not make a round of the call in progress.
    void leave_step();

    /// Call before each round. True if that is all; otherwise call begin_round.
    [[nodiscard]] bool count_round() {
        if (!is_in_call_ && !is_restarting_) [[likely]] {
            ++num_calls_;
            return true;
        }
        return is_counted_ && !is_restarting_ && !must_restart_;
    }
    /// Counts the call, and restarts if an earlier one was given up: `epoch` is then another one.
    status begin_round(const call_signature &call, std::uint64_t &epoch);
    /// A call was given up, and the members are not together yet.
    [[nodiscard]] bool is_restarting() const { return is_restarting_; }
    /// Restarts so far: what members have agreed on before may have reached some of them only.
    [[nodiscard]] std::uint64_t num_restarts() const { return num_restarts_; }

private:
    status restart(const call_signature &call, std::uint64_t &epoch);
    void give_up();
    error given_up_error(std::uint64_t epoch, const std::string &what);

    messaging::engine &engine_;
    const barrier_areas &areas_;
    bool is_in_call_ = false;
    bool has_several_rounds_ = false;
    bool is_counted_ = false;   ///< the call in progress
    bool has_failed_ = false;   ///< a wait in the call in progress
    int code_ = 0;              ///< of the last failure
    bool must_restart_ = false; ///< another member has given up the call in progress
    bool is_restarting_ = false;
    std::uint64_t num_calls_ = 0; ///< that this member has begun, equal on all members
    std::uint64_t num_restarts_ = 0;
};

/// Wakes the members' threads that sleep until a member stores something.
void wake_members(messaging::engine &engine, const barrier_areas &areas);

} // namespace diomp::sync
