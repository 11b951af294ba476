// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Communication between the nodes of a group.
//
// A call on a group that spans nodes begins with two arrivals at the node barrier of each node. The
// first arrival of a member carries its call signature. The call leader of the node (its leader, or
// the root of the call) reads them, exchanges tagged messages with the call leaders of the other
// nodes, and publishes the result with its second arrival, for which the other members wait. The
// other members make their second arrival at once, without data. The members of a node therefore
// stay in step even if they make different calls.
//
// arrive_and_wait: 2 arrivals of each member at its node's barrier, and a dissemination barrier
// between the call leaders: with N nodes each call leader sends and receives ceil(log2 N) messages
// of 56 bytes. A call leader that fails still sends its remaining messages, with its failure in
// them, so that the other nodes do not time out one after another. A call leader that waits for
// long requests the peer's report about the call. This finds ranks that wait for each other in
// different calls, and the rank that all others wait for, which the error message then names.
//
// The collective calls (coll/internal/two_level) are built from the same functions.
#pragma once

#include "group/internal/local_group.h"
#include "group/internal/matcher.h"
#include "group/internal/node_layout.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp::group {

/// A member that agrees to a call but cannot do its part, and a value that says why.
struct veto {
    std::uint32_t member = 0;
    std::uint64_t detail = 0;
};

/// One per member and group. Used by the thread that holds the group's call lock.
class internode_comm {
public:
    internode_comm(messaging::engine &engine, matcher &messages, std::uint64_t group_id,
                   std::span<const world_rank> members, const node_layout &layout,
                   local_group &local_members, std::size_t self);
    ~internode_comm();
    internode_comm(const internode_comm &) = delete;
    internode_comm &operator=(const internode_comm &) = delete;

    [[nodiscard]] const node_layout &layout() const { return layout_; }
    [[nodiscard]] local_group &local_members() { return local_; }
    [[nodiscard]] std::size_t num_nodes() const { return layout_.num_nodes(); }
    [[nodiscard]] std::size_t own_node() const { return layout_.own_node; }
    [[nodiscard]] std::size_t self() const { return self_; }
    [[nodiscard]] bool is_leader() const { return layout_.own_local_index == 0; }

    /// See group::arrive_and_wait and group::agree.
    status arrive_and_wait(const sync::call_signature &call);
    result<std::optional<veto>> agree(const sync::call_signature &call,
                                      std::optional<std::uint64_t> own_veto);
    status arrive_and_wait(const sync::call_signature &call, const sync::round_payload &payload);
    [[nodiscard]] const sync::round_payload &payload_of(std::size_t member) const {
        return payloads_[member];
    }

    /// Runs the agreement of the call that `begin` has started. Receives may be posted between the
    /// two, as long as no member sends to them before the agreement.
    status agree_on_call();

    // The steps of a call: begin, then arrive. The call leader then does gather_arrivals, the
    // exchange with the other call leaders, and publish_result; the other members do
    // wait_for_result. outcome is the status of the call. Failures are kept in the state until
    // then; no function waits after the first failure.

    /// Starts the next call on this member.
    void begin(const sync::call_signature &call);
    /// The root of the call if it is on this node, else the node's leader.
    [[nodiscard]] std::size_t call_leader_of(std::size_t node) const;
    [[nodiscard]] bool is_call_leader() const { return self_ == call_leader_of(own_node()); }
    /// The first arrival. `data` travels with it, or through the stage buffer if it is larger than
    /// max_inline_bytes: up to max_stage_data_bytes, with large stage buffers
    /// max_data_with_state_bytes.
    void arrive(std::span<const std::byte> data = {});
    static constexpr std::size_t max_stage_data_bytes = member_block::small_stage_bytes;
    static constexpr std::size_t max_data_with_state_bytes = std::size_t{64} << 10;
    /// Collective, part of the call `call`, once per group: gives all members large stage buffers
    /// if every node has the memory.
    status grow_stage_buffers(const sync::call_signature &call, std::size_t stage_buffer_bytes,
                              std::size_t buffer_half_bytes);
    /// Equal on all members; nullopt before grow_stage_buffers.
    [[nodiscard]] std::optional<bool> has_large_stage_buffers() const {
        return has_large_stage_buffers_;
    }
    /// Larger messages are sent as one long active message to members that accept it
    /// (max_am_long_bytes), not in fragments.
    static constexpr std::size_t max_copied_bytes = 4096;
    /// The member agrees to the call but cannot do its part.
    void raise_veto(std::uint64_t detail);
    /// Waits for the first arrival of every member on the node.
    void gather_arrivals();
    /// The data of a member's first arrival on this node. Valid after gather_arrivals.
    [[nodiscard]] const std::byte *arrival_data(std::size_t local_index, std::size_t nbytes) const;
    /// Replaces gather_arrivals for a call leader that only publishes data of `nbytes`: waits until
    /// no member still reads the slot that the data goes to. The call leader may thus be some calls
    /// ahead of the other members.
    void reserve_result_slot(std::size_t nbytes);
    /// Dissemination barrier of the call leaders; merges the states of all nodes.
    void disseminate();
    /// The second arrival of the call leader. `data` (sizes as for arrive) reaches the members of
    /// the node if the call has not failed. Above max_inline_bytes call gather_arrivals or
    /// reserve_result_slot before, above max_stage_data_bytes gather_arrivals.
    void publish_result(std::span<const std::byte> data = {});
    /// Waits for the second arrival of the node's call leader.
    void wait_for_result();
    /// The call leader's data, aligned to a cache line. Valid after wait_for_result.
    [[nodiscard]] const std::byte *published_result(std::size_t nbytes) const;
    /// This member has seen neither a mismatch nor a failure.
    [[nodiscard]] bool is_clean() const { return state_.is_clean() && !failure_; }
    [[nodiscard]] const call_state &state() const { return state_; }
    [[nodiscard]] status outcome();
    /// A mismatch in an earlier call, in which no member waited for the one that differed. Call at
    /// the end of a successful call: a member that ended before its part would leave others
    /// waiting.
    [[nodiscard]] status late_mismatch();

    /// Messages that begin with the call state; data of at most max_data_with_state_bytes. The send
    /// always happens; the receive only if nothing has failed before. The receive returns true if
    /// the data is complete and the calls match. Data of more than max_copied_bytes must stay
    /// unchanged until finish_sends.
    void send_with_state(std::size_t member, std::uint64_t step, std::span<const std::byte> data);
    bool receive_with_state(std::size_t member, std::uint64_t step, std::span<std::byte> data);
    /// How the sender of a large message learns that the receive is posted (RTR, ready to receive):
    /// announced by a control message of the receiver, or implied, because the receive is posted
    /// before the agreement of the call. Both sides pass the same mode.
    enum class rtr_mode : std::uint8_t { announced, implied };
    /// Messages without a state header, allowed only after agreement. Post the receive before
    /// sending anything that the peer's message may depend on. Large messages may still be in
    /// flight on return; `data` must stay unchanged until finish_sends.
    status send(std::size_t member, std::uint64_t step, std::span<const std::byte> data,
                rtr_mode rtr = rtr_mode::announced);
    /// Waits until all sends are complete. Returns the first failure since the last call.
    status finish_sends();
    /// finish_sends for messages with state: a failure becomes the failure of the call.
    void finish_sends_or_fail_call();
    void post_recv(recv_request &request, std::size_t member, std::uint64_t step,
                   std::span<std::byte> data, rtr_mode rtr = rtr_mode::announced);
    status wait_received(recv_request &request);
    /// Receives the first message of a call without agreement. A sender that refuses to send it
    /// sends its state with the step `refusal` instead. True if the message has arrived.
    bool receive_unless_refused(recv_request &request, std::size_t member, std::uint64_t refusal);
    /// Cancels a posted receive, complete or not.
    void cancel(recv_request &request);
    /// Messages up to this size go to this member as one long active message if the receive was
    /// posted before the agreement; equal on both sides. 0: unknown.
    [[nodiscard]] std::size_t max_am_long_bytes(std::size_t member) const {
        return engine_.transport().max_am_long(members_[member]);
    }
    /// Scratch memory for one call, aligned to a cache line. The next request invalidates it.
    std::byte *scratch(std::size_t nbytes);

    /// Broadcasts the bytes of the leader to all members on the node. If the leader passes `valid`
    /// = false, all of them get OMPX_ERR_PEER. Allowed after agreement.
    status bcast_from_leader(std::span<std::byte> bytes, bool valid);

    /// Calls made so far; equal on all members.
    [[nodiscard]] std::uint64_t num_calls() const { return call_; }

private:
    [[nodiscard]] bool is_only_local_member() const { return local_.size() == 1; }
    [[nodiscard]] bool can_wait() const {
        return !peer_diverged_ && !failure_ && state_.missing == call_state::no_member;
    }
    /// Waits for a receive. False if it cannot complete; then the failure is in the state.
    bool wait_received_or_fail(recv_request &request, std::size_t member);
    /// Waits until has_arrived() or until the message of this member cannot come any more.
    template <typename HasArrived>
    void wait_for_member(std::size_t member, HasArrived has_arrived);
    void merge(const call_state &received);
    void arrive_on_node(const sync::round_payload &payload, std::span<const std::byte> data);
    /// Records the failure of a wait for this rank of the world; the first failure is kept.
    void fail_call(std::int32_t rank, error why);
    /// Waits for the arrival of a member on this node in the given round, or in the last round.
    bool wait_for_arrival(std::size_t local_index, std::uint64_t round);
    void wait_for_arrivals(std::uint64_t round); ///< of all on this node
    bool wait_for_arrival(std::size_t local_index) {
        return wait_for_arrival(local_index, local_.barrier().epoch());
    }
    /// Published data of more than max_inline_bytes uses the slots of both buffer halves in turn.
    [[nodiscard]] static std::size_t slot_bytes(std::size_t nbytes) {
        return std::max(std::bit_ceil(nbytes), 2 * sync::node_barrier::max_inline_bytes);
    }
    [[nodiscard]] static std::size_t num_slots(std::size_t slot) {
        return 2 * (max_stage_data_bytes / slot);
    }
    [[nodiscard]] std::byte *result_slot_of(std::size_t local_index, std::size_t nbytes,
                                            std::uint64_t round) const;
    /// The size to request from local_group: buffers of up to max_stage_data_bytes share one
    /// position, so their size is passed as 0.
    [[nodiscard]] static std::size_t stage_request_bytes(std::size_t nbytes) {
        return nbytes <= max_stage_data_bytes ? 0 : nbytes;
    }
    void publish_awaited(std::int32_t rank);
    void process_report(const call_report &report);
    [[nodiscard]] std::string describe_wait(std::int32_t awaited) const;
    [[nodiscard]] group_rank call_leader_index() const;
    void run_round();
    status exchange_payloads();
    void progress_sends();

    /// A large message in flight.
    struct outgoing_message {
        world_rank to;
        message_tag tag;
        bool implies_fin = false; ///< the message itself completes the receive, no FIN follows
        transport::completion done;
        std::vector<std::vector<std::byte>> kept_scratch; ///< scratch memory of failed calls
    };

    [[nodiscard]] bool fits_am_long(world_rank peer, std::size_t nbytes) const {
        return nbytes > max_copied_bytes && nbytes <= engine_.transport().max_am_long(peer);
    }
    /// The message goes as one long active message; the receiver sends no RTR.
    [[nodiscard]] bool uses_am_long(world_rank peer, std::size_t nbytes, rtr_mode rtr) const {
        return rtr == rtr_mode::implied && fits_am_long(peer, nbytes);
    }
    status send_without_rtr(world_rank to, message_tag tag, std::span<const std::byte> data);

    messaging::engine &engine_;
    matcher &matcher_;
    std::uint64_t group_id_;
    std::span<const world_rank> members_;
    const node_layout &layout_;
    local_group &local_;
    std::size_t self_;
    match_queue &match_queue_;

    /// The last round with published data in a slot of this member. Other members may still read it
    /// after the call, until they arrive for the next one.
    std::uint64_t published_round_ = 0;
    std::size_t published_slot_bytes_ = 0; ///< slot size of that round
    std::uint64_t gathered_round_ = 0;     ///< last round in which all on this node were seen

    std::optional<bool> has_large_stage_buffers_;

    std::uint64_t call_ = 0;
    sync::call_signature own_call_; ///< the caller's own call
    call_state state_;
    bool peer_diverged_ = false;   ///< a peer made another call and will not send its part
    std::optional<error> failure_; ///< the first communication failure
    std::int32_t published_awaited_ =
        -1; ///< world rank that this member reports to wait for; -1: none
    std::vector<std::byte> scratch_;
    /// The conduit uses these completions until the messages are sent, even if the call fails.
    std::unique_ptr<std::deque<outgoing_message>> outgoing_;
    std::optional<error> send_failure_;         ///< the first failure since the last finish_sends
    std::vector<sync::round_payload> payloads_; ///< [member], of the last round with payload
};

} // namespace diomp::group
