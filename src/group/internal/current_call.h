// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a member knows about its current call on a group of several nodes.
#pragma once

#include "group/internal/call_state.h"
#include "group/internal/match_queue.h"
#include "group/internal/node_layout.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace diomp::group {

/// The call, the merged view of the members that made it, and the first failure. Failures are kept
/// here until `outcome`; no function waits after the first one.
class current_call {
public:
    /// `own_awaited`: where the other members on the node read the rank that this member waits for.
    current_call(const node_layout &layout, match_queue &queue,
                 std::atomic<std::uint64_t> &own_awaited)
        : layout_(layout), queue_(queue), own_awaited_(own_awaited) {}

    /// This member has given up the call in its middle: who waits for it learns that from its
    /// report. The next call has at least the number `next`.
    void give_up(std::uint64_t next);
    /// Starts the next call on this member.
    void begin(const sync::call_signature &made);
    /// Calls made so far; equal on all members.
    [[nodiscard]] std::uint64_t number() const { return number_; }
    /// The caller's own call.
    [[nodiscard]] const sync::call_signature &signature() const { return signature_; }
    [[nodiscard]] const node_layout &layout() const { return layout_; }
    /// The root of the call if it is on this node, else the node's leader.
    [[nodiscard]] std::size_t call_leader_of(std::size_t node) const;
    /// Local index of the call leader of the caller's node.
    [[nodiscard]] std::size_t call_leader_index() const;
    [[nodiscard]] bool is_call_leader() const {
        return layout_.self() == call_leader_of(layout_.own_node);
    }

    [[nodiscard]] const call_state &state() const { return state_; }
    /// This member has seen neither a mismatch nor a failure.
    [[nodiscard]] bool is_clean() const { return state_.is_clean() && !failure_ && !is_given_up_; }
    /// Other members have ended the call, which does not complete late, without this node: there is
    /// no result.
    [[nodiscard]] bool is_given_up() const { return is_given_up_; }
    [[nodiscard]] bool can_wait() const {
        return !peer_diverged_ && !failure_ && state_.missing == call_state::no_member;
    }
    /// A peer made another call and will not send its part.
    [[nodiscard]] bool peer_diverged() const { return peer_diverged_; }
    /// The member agrees to the call but cannot do its part.
    void raise_veto(std::uint64_t detail);
    void merge(const call_state &received);
    /// Adopts the state of a failed call that the call leader has published.
    void adopt_failure(const call_state &published);
    /// Records the failure of a wait for this rank of the world; the first failure is kept.
    void fail(std::int32_t rank, error why);

    [[nodiscard]] status outcome();
    /// A mismatch in an earlier call, in which no member waited for the one that differed. Call at
    /// the end of a successful call: a member that ended before its part would leave others
    /// waiting.
    [[nodiscard]] status late_mismatch();

    /// World rank that this member reports to wait for; -1: none.
    [[nodiscard]] std::int32_t awaited() const { return awaited_; }
    void publish_awaited(std::int32_t rank);
    /// Another member's report about the call, which this member has requested.
    void process_report(const call_report &report);
    [[nodiscard]] std::string describe_wait(std::int32_t awaited) const;
    /// The error for a member that another one has lost or given up waiting for.
    [[nodiscard]] error missing_error() const;

private:
    const node_layout &layout_;
    match_queue &queue_;
    std::atomic<std::uint64_t> &own_awaited_;
    std::uint64_t number_ = 0;
    sync::call_signature signature_;
    call_state state_;
    bool peer_diverged_ = false;
    bool is_given_up_ = false;
    std::optional<error> failure_; ///< the first communication failure
    std::int32_t awaited_ = -1;
};

} // namespace diomp::group
