// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A barrier with payload for the members of a group in memory that all of them can load and store:
// each member passes a call signature and 40 bytes to all others.
//
// Glossary: round: one use of the barrier, counted by the epoch. area: a member's cache lines, in
// its own slot. flag slot: epoch, signature and payload of one member for one round; a member has a
// ring of them, so that it may be several rounds ahead of a member that still reads. full round:
// all members wait for all (arrive_and_wait). arrive: a round in which each member waits only for
// the members whose payload it needs. short slot: the eight bytes of a short_arrive, all that its
// readers look at.
//
// A member does not read its own flag slot: the first reader may have taken the cache line away
// (processors with migratory sharing do so), and between distant cores getting it back costs as
// much as the round. A member also begins to write its next flag slot while it waits, so that it
// owns the line in time.
//
// Consecutive flag slots are not adjacent: if they were, the readers' processors would prefetch
// lines that are about to be written.
//
// Calls of several rounds, and what becomes of them after a timeout: sync/internal/call_restart.h.
//
// Up to 16 members, all members poll all flag slots: one cache line is transferred between each
// pair, in one step. In larger groups member 0 polls all flag slots and publishes the result in its
// own area: two steps, 2 (n - 1) lines.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "sync/internal/barrier_area.h"
#include "sync/internal/call_restart.h"
#include "sync/internal/mismatch_detector.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::messaging {
class engine;
}

namespace diomp::sync {

/// One per member and group, used by one thread at a time. The areas must be zeroed before any
/// member's first round, and outlive the object.
class node_barrier {
public:
    /// Maximum data beside a flag slot, for what does not fit into the payload.
    static constexpr std::size_t max_inline_bytes = barrier_area::max_inline_bytes;
    /// Bytes of a member's area, which is aligned to a cache line.
    static constexpr std::size_t area_bytes = sizeof(barrier_area);

    /// areas and members: by index; `self` is the caller's.
    node_barrier(messaging::engine &engine, std::span<std::byte *const> areas,
                 std::span<const world_rank> members, std::size_t self)
        : engine_(engine), areas_(areas, members, self), restart_(engine, areas_) {}

    /// Blocks until every member has arrived in this round; their earlier writes are then visible
    /// here. If members made different calls, all get the same OMPX_ERR_MISMATCH, and the next
    /// round works normally. After OMPX_ERR_TIMEOUT or OMPX_ERR_PEER the call counts as made: late
    /// members still complete the round.
    /// Passes `inline_data`, up to max_inline_bytes, to the others if it is not empty.
    status arrive_and_wait(const call_signature &call, const round_payload &payload = {},
                           std::span<const std::byte> inline_data = {});

    /// Arrives in a round without waiting for it (except for members that are num_flag_slots rounds
    /// behind; it then checks the others every num_flag_slots / 2 rounds).
    status arrive(const call_signature &call, const round_payload &payload,
                  std::span<const std::byte> inline_data = {});
    /// After arrive(): waits for one member. OMPX_ERR_MISMATCH if that member made another call.
    /// Members that do not wait for each other detect a mismatch in their next full round, or when
    /// they check the others; take_late_mismatch() has it then.
    status wait_for(std::size_t member);
    /// arrive() and wait_for() with one word, which is also the first word of the payload. For
    /// members that use wait_for_short().
    /// Four calls share a cache line, which is usually all that a waiter reads: between distant
    /// cores a line takes as long as several calls.
    status short_arrive(const call_signature &call, std::uint64_t word);
    status wait_for_short(std::size_t member);
    /// A member's word of the last round, after wait_for_short(); valid until the caller's next
    /// round.
    [[nodiscard]] const std::byte *short_data_of(std::size_t member) const {
        const barrier_area::short_slot &arrived = areas_[member].short_slot_of(epoch_);
        bool const is_there = arrived.tag.load(std::memory_order_acquire) == awaited_tag_;
        return reinterpret_cast<const std::byte *>(is_there ? &arrived.word
                                                            : payload_of(member).data());
    }
    /// For callers that wait and compare by themselves, after arrive(): whether the member has
    /// arrived in the last round, or in an earlier one, at most num_flag_slots before.
    [[nodiscard]] bool has_arrived(std::size_t member, std::uint64_t epoch) const {
        return areas_[member].has_arrived(epoch);
    }
    /// The member's call in the last round.
    [[nodiscard]] const call_signature &call_of(std::size_t member) const {
        return areas_[member].flag_slot_of(epoch_).call;
    }
    /// The mismatch of an earlier arrive() that was detected since the last call of this function,
    /// if any. For the end of a call: an error between its rounds would leave the other members in
    /// it.
    [[nodiscard]] status take_late_mismatch() { return detector_.take(); }
    /// From now on the caller compares the calls of arrive(), since it also has those of other
    /// nodes.
    void disable_comparison() { detector_.disable(); }

    /// For waits that the caller makes by itself: pass epoch().
    [[nodiscard]] call_restart &restart() { return restart_; }

    /// Number of rounds so far, equal on all members between calls.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    /// Waits until all members have arrived in the last round; returns at once after a full round.
    status wait_all_arrived() {
        return known_arrived_ == epoch_ && !restart_.is_restarting() ? status{}
                                                                     : poll_all_arrived();
    }

    /// A member's payload of the last round; valid until the caller's next round.
    [[nodiscard]] const round_payload &payload_of(std::size_t member) const {
        return member == areas_.self() ? own_payload_ : areas_[member].flag_slot_of(epoch_).payload;
    }
    /// A member's inline data of the last round; valid until the caller's next round; aligned to a
    /// cache line. For the caller's own data, use the caller's copy: it is faster to read.
    [[nodiscard]] const std::byte *inline_data_of(std::size_t member) const {
        return areas_[member].inline_data_of(epoch_);
    }

private:
    status begin_round(const call_signature &call, const round_payload &payload,
                       std::span<const std::byte> inline_data, bool is_arrive_only);
    /// Call after a store that members may wait for.
    void wake_sleepers();
    status poll_all_arrived();
    /// Waits for the end of this member's last full round.
    status wait_round(std::size_t &differing);
    void publish_result(std::size_t differing);
    void note_all_arrived(std::uint64_t epoch);
    status check_call_of(std::size_t member);
    status wait_arrivals(std::uint64_t epoch);
    /// Waits until `ready`, or fails: also if another member gives up the call.
    template <typename Ready>
    status wait(Ready &&ready, std::uint64_t epoch);
    status restart_round(const call_signature &call);

    messaging::engine &engine_;
    barrier_areas areas_;
    call_restart restart_;
    std::uint64_t epoch_ = 0;
    call_signature own_call_; ///< as in the own flag slot of the last round
    round_payload own_payload_{};
    std::uint64_t known_arrived_ = 0; ///< every member has arrived in this round
    std::uint64_t awaited_tag_ = 0;   ///< of the last wait_for_short()
    mismatch_detector detector_;      ///< of the calls of arrive()
    /// member 0 must still publish the result of the last round
    bool has_unpublished_result_ = false;
};

/// The rounds of one call, which every member makes as many times. Nested ones belong to the
/// outermost one, which has several rounds if one of them has.
class call_scope {
public:
    explicit call_scope(node_barrier &of, call_rounds made = call_rounds::several)
        : of_(of.restart()), is_outermost_(!of_.is_in_call()) {
        if (is_outermost_) {
            of_.begin_call(made);
        } else if (made == call_rounds::several) {
            of_.note_several_rounds();
        }
    }
    ~call_scope() {
        if (is_outermost_) {
            of_.end_call();
        }
    }
    call_scope(const call_scope &) = delete;
    call_scope &operator=(const call_scope &) = delete;

private:
    call_restart &of_;
    bool is_outermost_;
};

} // namespace diomp::sync
