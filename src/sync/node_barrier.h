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
// Up to flat_limit members, all members poll all flag slots: one cache line is transferred between
// each pair, in one step. In larger groups member 0 polls all flag slots and publishes the result
// in its own area: two steps, 2 (n - 1) lines.
#pragma once

#include "base/cpu.h"
#include "base/ids.h"
#include "base/result.h"
#include "messaging/engine.h"
#include "sync/call_signature.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp::sync {

/// Payload of a member in a round: five words of the caller's choice.
using round_payload = std::array<std::uint64_t, 5>;

/// One per member and group, used by one thread at a time. The areas must be zeroed before any
/// member's first round, and outlive the object.
class node_barrier {
public:
    static constexpr std::size_t flat_limit = 16;
    /// Flag slots per member. A member that only calls arrive() checks the others every
    /// num_flag_slots / 2 rounds.
    static constexpr std::size_t num_flag_slots = 128;
    /// Maximum data beside a flag slot, for what does not fit into the payload.
    static constexpr std::size_t max_inline_bytes = 256;
    /// Bytes of a member's area, which is aligned to a cache line.
    static constexpr std::size_t area_bytes =
        (num_flag_slots + 2) * cache_line_bytes +
        num_flag_slots * (max_inline_bytes + 3 * sizeof(std::uint64_t));

    /// areas and members: [group rank]. `self` is the caller's index in them.
    node_barrier(messaging::engine &engine, std::span<std::byte *const> areas,
                 std::span<const world_rank> members, group_rank self);

    [[nodiscard]] std::size_t num_members() const { return areas_.size(); }

    /// Blocks until every member has arrived in this round; their earlier writes are then visible
    /// here. If members made different calls, all get the same OMPX_ERR_MISMATCH, and the next
    /// round works normally. After OMPX_ERR_TIMEOUT or OMPX_ERR_PEER the call counts as made: late
    /// members still complete the round.
    status arrive_and_wait(const call_signature &call) {
        return arrive_and_wait(call, round_payload{});
    }
    /// Passes `inline_data`, up to max_inline_bytes, to the others if it is not empty.
    status arrive_and_wait(const call_signature &call, const round_payload &payload,
                           std::span<const std::byte> inline_data = {});

    /// Arrives in a round without waiting for it (except for members that are num_flag_slots rounds
    /// behind).
    status arrive(const call_signature &call, const round_payload &payload,
                  std::span<const std::byte> inline_data = {});
    /// After arrive(): waits for one member. OMPX_ERR_MISMATCH if that member made another call.
    /// Members that do not wait for each other detect a mismatch in their next full round, or when
    /// they check the others: that call is made, and then reports the earlier mismatch.
    status wait_for(group_rank member);
    /// arrive() and wait_for() with one word, which is also the first word of the payload. For
    /// members that use wait_for_short().
    /// Four calls share a cache line, which is usually all that a waiter reads: between distant
    /// cores a line takes as long as several calls.
    status short_arrive(const call_signature &call, std::uint64_t word);
    status wait_for_short(group_rank member);
    /// A member's word of the last round, after wait_for_short(); valid until the caller's next
    /// round.
    [[nodiscard]] const std::byte *short_data_of(group_rank member) const {
        const short_slot &arrived = short_slot_at(member.index(), epoch_);
        bool const is_there = arrived.tag.load(std::memory_order_acquire) == awaited_tag_;
        return reinterpret_cast<const std::byte *>(is_there ? &arrived.word
                                                            : payload_of(member).data());
    }
    /// For callers that wait and compare by themselves, after arrive(): whether the member has
    /// arrived in the last round.
    [[nodiscard]] bool has_arrived(group_rank member) const {
        return has_arrived(member.index(), epoch_);
    }
    /// Whether the member has arrived in an earlier round, at most num_flag_slots before the last.
    [[nodiscard]] bool has_arrived(group_rank member, std::uint64_t epoch) const {
        return has_arrived(member.index(), epoch);
    }
    /// The member's call in the last round.
    [[nodiscard]] const call_signature &call_of(group_rank member) const {
        return flag_slot_of(member.index(), epoch_).call;
    }
    /// From now on the caller compares the calls of arrive(), since it also has those of other
    /// nodes.
    void disable_comparison() { compares_arrivals_ = false; }

    /// Number of rounds so far, equal on all members between calls.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    /// Waits until all members have arrived in the last round; returns at once after a full round.
    status wait_all_arrived() { return known_arrived_ == epoch_ ? status{} : poll_all_arrived(); }

    /// A member's payload of the last round; valid until the caller's next round.
    [[nodiscard]] const round_payload &payload_of(group_rank member) const {
        return member.index() == self_ ? own_payload_
                                       : flag_slot_of(member.index(), epoch_).payload;
    }
    /// A member's inline data of the last round; valid until the caller's next round; aligned to a
    /// cache line. For the caller's own data, use the caller's copy: it is faster to read.
    [[nodiscard]] const std::byte *inline_data_of(group_rank member) const {
        return areas_[member.index()]->inline_data[epoch_ % num_flag_slots];
    }

private:
    struct alignas(cache_line_bytes) flag_slot {
        std::atomic<std::uint64_t> epoch;
        call_signature call;
        round_payload payload;
    };
    /// Slot of a short_arrive: the tag identifies the round and the call.
    struct short_slot {
        std::atomic<std::uint64_t> tag;
        std::uint64_t word;
    };
    static constexpr std::size_t short_slots_per_line = cache_line_bytes / sizeof(short_slot);
    struct alignas(cache_line_bytes) round_result {
        std::atomic<std::uint64_t> epoch;
        std::uint64_t differing; ///< member whose call differs from member 0's; 0: none
    };
    struct area {
        flag_slot flag_slots[num_flag_slots];
        round_result results[2]; ///< of full rounds, by member 0, in large groups
        short_slot short_slots[num_flag_slots];
        std::byte inline_data[num_flag_slots][max_inline_bytes];
        /// Digests of operation and root of all calls up to the call of the flag slot.
        std::atomic<std::uint64_t> digests[num_flag_slots];
    };
    static_assert(sizeof(flag_slot) == cache_line_bytes && sizeof(area) == area_bytes);

    /// Index of a round's flag slot.
    static std::size_t slot_position(std::uint64_t epoch);
    /// Index of a round's short slot. The short slots of a cache line are consecutive, the lines
    /// are not.
    static std::size_t short_slot_position(std::uint64_t epoch);
    [[nodiscard]] std::uint64_t tag_of(const call_signature &call) const;
    [[nodiscard]] const short_slot &short_slot_at(std::size_t member, std::uint64_t epoch) const {
        return areas_[member]->short_slots[short_slot_position(epoch)];
    }
    [[nodiscard]] const flag_slot &flag_slot_of(std::size_t member, std::uint64_t epoch) const {
        return areas_[member]->flag_slots[slot_position(epoch)];
    }
    [[nodiscard]] bool has_arrived(std::size_t member, std::uint64_t epoch) const {
        return flag_slot_of(member, epoch).epoch.load(std::memory_order_acquire) >= epoch;
    }
    status begin_round(const call_signature &call, const round_payload &payload,
                       std::span<const std::byte> inline_data, bool is_arrive_only);
    static void touch_slot(area &mine, std::uint64_t epoch, std::size_t num_inline_bytes);
    /// Call after a store that members may wait for.
    void wake_sleepers() {
        if (engine_.needs_wake()) [[unlikely]] {
            wake_members();
        }
    }
    void wake_members();
    status poll_all_arrived();
    /// Waits for the end of this member's last full round.
    status wait_round(std::size_t &differing);
    void publish_result(std::size_t differing);
    void note_all_arrived(std::uint64_t epoch);
    [[nodiscard]] bool has_same_history(std::size_t member, std::uint64_t epoch) const;
    void compare_arrivals(std::uint64_t epoch);
    /// The mismatch of an earlier call that was detected meanwhile, if any.
    status take_late_mismatch();
    status check_call_of(std::size_t member);
    status wait_arrivals(std::uint64_t epoch);
    status wait_result(std::uint64_t epoch, std::size_t &differing);
    [[nodiscard]] std::size_t find_differing() const;
    [[nodiscard]] error mismatch(std::size_t one, std::size_t other, std::uint64_t epoch) const;
    [[nodiscard]] std::string describe_missing(std::uint64_t epoch) const;

    messaging::engine &engine_;
    std::vector<area *> areas_;
    std::vector<world_rank> members_;
    std::size_t self_;
    std::uint64_t epoch_ = 0;
    call_signature own_call_; ///< as in the own flag slot of the last round
    round_payload own_payload_{};
    std::uint64_t digest_ = 0;           ///< as in the area
    std::uint64_t known_arrived_ = 0;    ///< every member has arrived in this round
    std::uint64_t awaited_tag_ = 0;      ///< of the last wait_for_short()
    std::uint64_t reported_ = 0;         ///< the last round whose mismatch wait_for() returned
    std::optional<error> late_mismatch_; ///< of an earlier arrive()
    bool compares_arrivals_ = true;
    /// member 0 must still publish the result of the last round
    bool has_unpublished_result_ = false;
};

/// Bit reversal of the index: no stride that a hardware prefetcher recognises.
inline constexpr auto slot_positions = [] {
    std::array<std::uint8_t, node_barrier::num_flag_slots> positions{};
    for (std::size_t i = 0; i < positions.size(); ++i) {
        for (std::size_t bit = 1; bit < positions.size(); bit *= 2) {
            positions[i] = static_cast<std::uint8_t>(positions[i] * 2 + ((i & bit) != 0 ? 1 : 0));
        }
    }
    return positions;
}();

inline std::size_t node_barrier::slot_position(std::uint64_t epoch) {
    return slot_positions[epoch % num_flag_slots];
}

inline std::size_t node_barrier::short_slot_position(std::uint64_t epoch) {
    // The low bits of the reversed index select within the line: no part of the line is lost.
    std::uint64_t const line = epoch / short_slots_per_line;
    return slot_positions[line * short_slots_per_line % num_flag_slots] * short_slots_per_line +
           epoch % short_slots_per_line;
}

} // namespace diomp::sync
