// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What joins the nodes of a group.
//
// A call on a group that spans nodes begins with two posts on each node. In the first every member
// tells its call. The speaker of the node (its leader, or the root of the call) reads them, talks
// to the other nodes' speakers by letters, and tells the outcome in its second post, which the
// others wait for. Members that do not speak make their second post at once, without content. So
// whatever the members of a node believe to be doing, they stay in step.
//
// meet: 2 posts, and between the speakers a dissemination barrier: with N nodes ceil(log2 N)
// letters out of and into each node, of 56 bytes. A speaker that fails sends what it still owes,
// with its failure, so that the others need not time out one after the other. One that waits for
// long asks the other what it has made of the call: so calls that wait for each other although they
// are different ones are found, and the one that everybody waits for has a name.
//
// Collective calls (collective/spanning) are made of the same pieces.
#pragma once

#include "group/local_group.h"
#include "group/mailbox.h"
#include "group/node_layout.h"

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

/// A member that agrees to a call but cannot do its part, and a number about it.
struct objection {
    std::uint32_t member = 0;
    std::uint64_t detail = 0;
};

/// One per member and group; for the thread that holds the group's turn.
class bridge {
public:
    bridge(conduit::engine &engine, mailbox &letters, std::uint64_t group_id,
           std::span<const world_rank> members, const node_layout &layout, local_group &here,
           std::size_t self);
    ~bridge();
    bridge(const bridge &) = delete;
    bridge &operator=(const bridge &) = delete;

    [[nodiscard]] const node_layout &layout() const { return layout_; }
    [[nodiscard]] local_group &here() { return here_; }
    [[nodiscard]] std::size_t num_nodes() const { return layout_.num_nodes(); }
    [[nodiscard]] std::size_t own_node() const { return layout_.own_node; }
    [[nodiscard]] std::size_t self() const { return self_; }
    [[nodiscard]] bool is_leader() const { return layout_.own_place == 0; }

    /// As group::meet and group::agree.
    status meet(const sync::call_signature &call);
    result<std::optional<objection>> agree(const sync::call_signature &call,
                                           std::optional<std::uint64_t> own_objection);
    status meet(const sync::call_signature &call, const sync::meeting_payload &payload);
    [[nodiscard]] const sync::meeting_payload &payload_of(std::size_t member) const {
        return payloads_[member];
    }

    /// The same after begin: for calls that expect letters before they know that all agree, as long
    /// as nobody sends those before.
    status meet_begun();

    // The pieces. begin, then enter, then: the speaker does collect, its talk with the other
    // speakers, and announce; the others follow. outcome is the status of the call. Failures stay
    // in the state until then; nothing waits after the first one.

    /// The root of a call that has one speaks for its node, leaders for all others.
    void begin(const sync::call_signature &call);
    [[nodiscard]] std::size_t speaker_of(std::size_t node) const;
    [[nodiscard]] bool speaks() const { return self_ == speaker_of(own_node()); }
    /// The first post. Data goes with it, or what is more than wide_bytes through the stage: up to
    /// most_data_bytes, with wide stages most_told_bytes.
    void enter(std::span<const std::byte> data = {});
    static constexpr std::size_t most_data_bytes = member_block::small_stage_bytes;
    static constexpr std::size_t most_told_bytes = std::size_t{64} << 10;
    /// Collective, part of the call `call`, once: gives all nodes such stages, if all have the
    /// memory.
    status widen_stages(const sync::call_signature &call, std::size_t stage_bytes,
                        std::size_t room_bytes);
    /// The same on all members; none before widen_stages.
    [[nodiscard]] std::optional<bool> has_wide_stages() const { return has_wide_stages_; }
    /// Larger letters go in one message to members that take any (most_whole_bytes), not in
    /// fragments.
    static constexpr std::size_t most_copied_bytes = 4096;
    void object(std::uint64_t detail);
    /// Waits for the first posts of all members on the node.
    void collect();
    /// The data that a member on the node brought, after collect.
    [[nodiscard]] const std::byte *brought_by(std::size_t place, std::size_t nbytes) const;
    /// Instead, for a speaker that only announces, data of `nbytes`: waits until nobody reads any
    /// more what was announced where this will lie. So it may be some calls ahead.
    void make_room(std::size_t nbytes);
    /// The leaders' barrier; merges what all nodes know.
    void disseminate();
    /// The second post of the speaker. Data as in enter reaches the followers if all is well; for
    /// more than wide_bytes, collect or make_room before, for more than most_data_bytes collect.
    void announce(std::span<const std::byte> data = {});
    /// Waits for that.
    void follow();
    /// What the speaker announced, after follow; aligned to a cache line.
    [[nodiscard]] const std::byte *announced(std::size_t nbytes) const;
    /// Nobody disagrees or has failed, as far as this member knows.
    [[nodiscard]] bool is_clean() const { return state_.is_clean() && !failure_; }
    [[nodiscard]] const call_state &state() const { return state_; }
    [[nodiscard]] status outcome();
    /// A disagreement about an earlier call, in which nobody waited for who differed. For the end
    /// of a call that has gone well: a member that ended before its part would leave others
    /// waiting.
    [[nodiscard]] status found_late();

    /// Letters with the state in front, data of at most most_told_bytes: told always, heard unless
    /// something has failed before. True if the data is complete and nobody disagrees. What is told
    /// must stay until finish_sends if it is more than most_copied_bytes.
    void tell(std::size_t member, std::uint64_t step, std::span<const std::byte> data);
    bool hear(std::size_t member, std::uint64_t step, std::span<std::byte> data);
    /// How the sender of a large letter knows that it is expected: its receiver tells, or has
    /// expected it before the agreement of the call, which is known after that. The same on both
    /// sides.
    enum class readiness : std::uint8_t { told, agreed };
    /// Letters without: after agreement. To be expected before anything is sent that the other
    /// side's letter may depend on.
    /// Large letters may still be on their way on return; `data` must stay until finish_sends.
    status send(std::size_t member, std::uint64_t step, std::span<const std::byte> data,
                readiness how = readiness::told);
    status finish_sends();
    /// The same for what has been told: a failure becomes that of the call.
    void settle_sends();
    void expect(receipt &place, std::size_t member, std::uint64_t step, std::span<std::byte> data,
                readiness how = readiness::told);
    status await(receipt &place);
    /// For the first letter of a call whose members have not agreed before. A sender that does not
    /// send it tells its state with the step `refusal` instead. True if it has come.
    bool hear_unless_refused(receipt &place, std::size_t member, std::uint64_t refusal);
    /// Of what has been expected and perhaps not awaited.
    void withdraw(receipt &place);
    /// Letters up to this size go in one message to this member where their receiver has expected
    /// them before the agreement; the same on both sides. 0: nobody knows.
    [[nodiscard]] std::size_t most_whole_bytes(std::size_t member) const {
        return engine_.transport().sure_bulk_bytes(members_[member]);
    }
    /// Memory for the length of a call, aligned to a cache line. Void at the next time.
    std::byte *scratch(std::size_t nbytes);

    /// Local: gives all members on the node the bytes of the leader; `sound` is false there if they
    /// are worthless. After agreement.
    status share(std::span<std::byte> bytes, bool sound);

    /// Calls made so far, the same on all members.
    [[nodiscard]] std::uint64_t num_calls() const { return call_; }

private:
    [[nodiscard]] bool alone_here() const { return here_.size() == 1; }
    [[nodiscard]] bool waits() const {
        return !broken_ && !failure_ && state_.missing == call_state::nobody;
    }
    /// False if it is in vain.
    bool wait_for(receipt &place, std::size_t member);
    /// For what this member has to send; until then, or in vain.
    template <typename HasCome>
    void wait_for_member(std::size_t member, HasCome has_come);
    void merge(const call_state &heard);
    void post(const sync::meeting_payload &payload, std::span<const std::byte> data);
    /// A rank of the world.
    void give_up_on(std::int32_t rank, error why);
    /// Of a member on this node, for its post that this member has made last.
    bool await_post(std::size_t place, std::uint64_t meeting);
    void await_posts(std::uint64_t meeting); ///< of all on this node
    bool await_post(std::size_t place) { return await_post(place, here_.lines().epoch()); }
    /// Announced data of more than wide_bytes lies in one slot after the other of both rooms.
    [[nodiscard]] static std::size_t slot_bytes(std::size_t nbytes) {
        return std::max(std::bit_ceil(nbytes), 2 * sync::rendezvous::wide_bytes);
    }
    [[nodiscard]] static std::size_t num_slots(std::size_t slot) {
        return 2 * (most_data_bytes / slot);
    }
    [[nodiscard]] std::byte *slot_of(std::size_t place, std::size_t nbytes,
                                     std::uint64_t meeting) const;
    /// What local_group wants to know of a stage: all that hold up to most_data_bytes lie in the
    /// same place.
    [[nodiscard]] static std::size_t stage_size(std::size_t nbytes) {
        return nbytes <= most_data_bytes ? 0 : nbytes;
    }
    void show_awaited(std::int32_t rank);
    void learn(const call_report &answer);
    [[nodiscard]] std::string describe_wait(std::int32_t awaited) const;
    [[nodiscard]] group_rank speaker_place() const;
    void run_meeting();
    status exchange_payloads();
    void pump();

    /// A large letter on its way.
    struct outgoing_letter {
        world_rank to;
        letter_tag tag;
        bool is_told = false; ///< the note that it has landed goes with it
        conduit::completion done;
        std::vector<std::vector<std::byte>> kept; ///< scratch memory of calls that did not wait
    };

    [[nodiscard]] bool takes_whole(world_rank peer, std::size_t nbytes) const {
        return nbytes > most_copied_bytes && nbytes <= engine_.transport().sure_bulk_bytes(peer);
    }
    /// The conduit takes it in one message in any case: then nobody has to say where it shall go.
    [[nodiscard]] bool goes_whole(world_rank peer, std::size_t nbytes, readiness how) const {
        return how == readiness::agreed && takes_whole(peer, nbytes);
    }
    status send_agreed(world_rank to, letter_tag tag, std::span<const std::byte> data);

    conduit::engine &engine_;
    mailbox &mailbox_;
    std::uint64_t group_id_;
    std::span<const world_rank> members_;
    const node_layout &layout_;
    local_group &here_;
    std::size_t self_;
    inbox &inbox_;

    /// The last meeting with data in a slot of this member. Others may still read there when the
    /// call is over, until they enter the next one.
    std::uint64_t announced_at_ = 0;
    std::size_t announced_slot_ = 0; ///< size of that one
    std::uint64_t collected_at_ = 0; ///< the last meeting that all on this node were seen in

    std::optional<bool> has_wide_stages_;

    std::uint64_t call_ = 0;
    sync::call_signature made_; ///< the caller's own call
    call_state state_;
    bool broken_ = false; ///< somebody made another call and will not send what this one needs
    std::optional<error> failure_; ///< of the communication, the first one
    std::int32_t shown_ = -1;      ///< rank of the world that others are told to be waiting for
    std::vector<std::byte> scratch_;
    /// The conduit writes into these until they have landed, whatever else fails.
    std::unique_ptr<std::deque<outgoing_letter>> outgoing_;
    std::optional<error> lost_letter_;            ///< the first failure since the last finish_sends
    std::vector<sync::meeting_payload> payloads_; ///< [member], of the last meeting with payload
};

} // namespace diomp::group
