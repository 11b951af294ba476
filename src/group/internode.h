// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Communication between the nodes of a group.
//
// arrive_and_wait: 2 arrivals of each member at its node's barrier (arrival_protocol.h), and a
// dissemination barrier between the call leaders: with N nodes each call leader sends and receives
// ceil(log2 N) messages of 56 bytes. Or a tree, with two messages per call leader on average: where
// the connections count more than the rounds (synchronize). A call leader that fails still sends
// its remaining messages, with its failure in them, so that the other nodes do not time out one
// after another.
//
// The collective calls (coll/internal/two_level) are built from the parts.
#pragma once

#include "group/internal/arrival_protocol.h"
#include "group/internal/current_call.h"
#include "group/internal/deadlock_probe.h"
#include "group/internal/internode_channel.h"
#include "group/internal/local_group.h"
#include "group/internal/payload_exchange.h"
#include "group/internal/rndv_buffers.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace diomp::group {

class match_queue_table;
class matcher;
struct veto;

/// The agreement about a call, and the parts that all calls use. One per member and group; used by
/// the thread that holds the group's call lock.
class internode_comm {
public:
    internode_comm(messaging::engine &engine, matcher &messages, std::uint64_t group_id,
                   const node_layout &layout, local_group &local_members);
    ~internode_comm();
    internode_comm(const internode_comm &) = delete;
    internode_comm &operator=(const internode_comm &) = delete;

    [[nodiscard]] const node_layout &layout() const { return layout_; }
    [[nodiscard]] local_group &local_members() { return local_; }
    [[nodiscard]] current_call &current() { return current_; }
    [[nodiscard]] internode_channel &channel() { return channel_; }
    [[nodiscard]] arrival_protocol &arrivals() { return arrivals_; }
    [[nodiscard]] payload_exchange &payloads() { return payloads_; }

    /// Makes the steps of one call of the program: body returns a status or a result. If a call of
    /// several steps fails on some members (note_several_rounds), all go on from a number of
    /// current_call, and a round of the node barrier, that depend on the number of the call only.
    /// OMPX_ERR_STATE: see is_broken.
    template <typename Body>
    auto make_call(Body &&body) -> decltype(body());
    /// What make_call does before and after the body; false: in a call already.
    [[nodiscard]] bool enter_call();
    void leave_call();
    /// The call in progress has steps that a member may leave out if it fails before.
    void note_several_rounds() {
        call_of_program_.has_several_rounds = true;
        local_.barrier().restart().note_several_rounds();
    }

    /// The stage buffers grow now: if the call fails meanwhile, members may not agree about them.
    void note_growth(bool is_in_progress) { call_of_program_.is_growing = is_in_progress; }

    /// See group::arrive_and_wait and group::agree.
    status arrive_and_wait(const sync::call_signature &call);
    result<std::optional<veto>> agree(const sync::call_signature &call,
                                      std::optional<std::uint64_t> own_veto);
    /// Runs the agreement of the call that current_call::begin has started. Receives may be posted
    /// between the two, as long as no member sends to them before the agreement.
    status agree_on_call();
    /// Barrier of the call leaders; merges the states of all nodes. Part of the current call.
    void synchronize();

    /// Collective, part of the call `call`, once per group: gives all members large stage buffers
    /// if every node has the memory.
    status grow_stage_buffers(const sync::call_signature &call, std::size_t stage_buffer_bytes,
                              std::size_t buffer_half_bytes);
    /// Equal on all members; nullopt before grow_stage_buffers.
    [[nodiscard]] std::optional<bool> has_large_stage_buffers() const {
        return has_large_stage_buffers_;
    }

private:
    static error broken_error();
    void note_failure(int code);
    [[nodiscard]] bool prefers_tree() const;
    void combine_in_tree();
    void disseminate();

    match_queue_table &queues_;
    std::uint64_t group_id_;
    const node_layout &layout_;
    local_group &local_;
    match_queue &queue_;
    current_call current_;
    deadlock_probe probe_;
    internode_channel channel_;
    arrival_protocol arrivals_;
    payload_exchange payloads_;
    std::optional<bool> has_large_stage_buffers_;
    struct {
        std::uint64_t number = 0;
        int failure = 0; ///< of a step, for which members may have left it out
        bool is_in_progress = false;
        bool has_several_rounds = false;
        bool is_growing = false; ///< note_growth
        bool is_broken = false;  ///< the members do not agree about their stage buffers
    } call_of_program_;
};

template <typename Body>
auto internode_comm::make_call(Body &&body) -> decltype(body()) {
    if (call_of_program_.is_broken) {
        return broken_error();
    }
    sync::call_scope const rounds(local_.barrier(), sync::call_rounds::equal);
    bool const is_outermost = enter_call();
    auto outcome = body();
    if (!outcome) [[unlikely]] {
        note_failure(outcome.failure().code());
    }
    if (is_outermost) {
        leave_call();
    }
    return outcome;
}

} // namespace diomp::group
