// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The members of a group on one node: they meet and exchange data in memory that all of them load
// and store. A group on one node is nothing else.
//
// Glossary: block: the memory of one member for one group, in the runtime's part of its slot,
// loadable by all members of the node: the lines of the rendezvous and small stages. stage: where a
// member puts data for the others. room: what a member has for stages, one for even and one for odd
// meetings. place: the position of a member among those of its node. workspace: where blocks come
// from.
//
// The stage's rule, on which every collective stands: what a member writes into its stage for the
// coming meeting (next_stage) may be read by all after that meeting, until they enter the next one.
// Then the stage lies in the other room, so nobody waits for readers.
//
// Stages of more than `still_bytes` wander through their room, once that is large. A line that its
// reader still has in its cache must be taken from there before it can be written again, which
// costs 10 ns between cores that share a cache and 40 between others; from two rooms of the size of
// the core's own cache it has gone by then.
#pragma once

#include "base/best_way.h"
#include "sync/rendezvous.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace diomp::group {

/// Where blocks come from: space in the calling rank's own slot, as offsets from its start.
class workspace {
public:
    virtual ~workspace() = default;
    /// None, too, if there would not be `spare` bytes left in one piece.
    virtual std::optional<std::uint64_t> allocate(std::size_t nbytes, std::size_t spare) = 0;
    std::optional<std::uint64_t> allocate(std::size_t nbytes) { return allocate(nbytes, 0); }
    virtual void release(std::uint64_t slot_offset) = 0;
    /// Whether other nodes can put there: the range lies in the caller's own slot.
    [[nodiscard]] virtual bool holds(std::span<const std::byte> range) const = 0;
};

/// A member's block as its owner lays it out. Only the part before the stages must be zeroed.
struct member_block {
    static constexpr std::size_t small_stage_bytes = 8192;

    std::byte meeting[sync::rendezvous::area_bytes];
    /// Members that will never touch this block again (ompx_group_free).
    alignas(cache_line_bytes) std::atomic<std::uint64_t> departed;
    /// The owner speaks for the node and waits for this rank of the world, plus one; 0: it does
    /// not.
    std::atomic<std::uint64_t> awaited_rank;
    alignas(cache_line_bytes) std::byte stages[2][small_stage_bytes];
};

/// A zeroed block in the caller's own slot.
std::optional<std::uint64_t> allocate_block(workspace &space, std::byte *slot);

/// Used by the thread that holds the group's turn. [place] is the index of every list.
class local_group {
public:
    /// Every member must be directly mapped. offsets: of the members' blocks in their slots.
    local_group(conduit::engine &engine, workspace &space, std::vector<world_rank> members,
                std::span<const std::uint64_t> offsets, std::size_t self);
    ~local_group();
    local_group(const local_group &) = delete;
    local_group &operator=(const local_group &) = delete;

    [[nodiscard]] std::size_t size() const { return members_.size(); }
    [[nodiscard]] group_rank self() const { return self_; }
    [[nodiscard]] std::span<const world_rank> members() const { return members_; }

    status meet(const sync::call_signature &call, const sync::meeting_payload &payload = {},
                std::span<const std::byte> wide = {}) {
        return rendezvous_.meet(call, payload, wide);
    }
    /// As sync::rendezvous::post and await: for calls that need no stage.
    status post(const sync::call_signature &call, const sync::meeting_payload &payload,
                std::span<const std::byte> wide) {
        return rendezvous_.post(call, payload, wide);
    }
    status post_brief(const sync::call_signature &call, std::uint64_t word) {
        return rendezvous_.post_brief(call, word);
    }
    status await_brief(std::size_t member) {
        return rendezvous_.await_brief(group_rank{static_cast<int>(member)});
    }
    [[nodiscard]] const std::byte *brief_of(std::size_t member) const {
        return rendezvous_.brief_of(group_rank{static_cast<int>(member)});
    }
    status await(std::size_t member) {
        return rendezvous_.await(group_rank{static_cast<int>(member)});
    }
    /// Before the first write to a stage in a call: after posts, somebody may still read it.
    status settle() { return rendezvous_.settle(); }
    [[nodiscard]] const sync::meeting_payload &payload_of(std::size_t member) const {
        return rendezvous_.payload_of(group_rank{static_cast<int>(member)});
    }
    [[nodiscard]] const std::byte *wide_of(std::size_t member) const {
        return rendezvous_.wide_of(group_rank{static_cast<int>(member)});
    }

    /// Smaller stages stay where they are: their lines are few enough to be taken back while the
    /// meeting lasts, and come quicker from there than from a cache further away.
    static constexpr std::size_t still_bytes = 4096;
    [[nodiscard]] std::size_t stage_bytes() const { return stage_bytes_; }
    /// How this member best writes its stage in calls on blocks of this size: 0, through the
    /// caches, or 1, past them. nullptr: it does not matter.
    [[nodiscard]] best_way *stage_ways(std::size_t block_bytes) {
        constexpr std::size_t least_bytes = std::size_t{2} << 10;
        if (block_bytes < least_bytes) {
            return nullptr;
        }
        auto const index = static_cast<std::size_t>(std::bit_width(block_bytes / least_bytes) - 1);
        return &stage_ways_[std::min(index, stage_ways_.size() - 1)];
    }
    /// Own stage for the coming meeting, of `nbytes`, at most stage_bytes(): the same on all
    /// members and for all stages of a call, or anything up to still_bytes.
    [[nodiscard]] std::byte *next_stage(std::size_t nbytes = 0) const {
        return stage_at(self_.index(), rendezvous_.epoch() + 1, nbytes);
    }
    /// A member's stage of the last meeting, of as many bytes as it was given.
    [[nodiscard]] std::byte *stage_of(std::size_t member, std::size_t nbytes = 0) const {
        return stage_at(member, rendezvous_.epoch(), nbytes);
    }
    /// The same of any meeting.
    [[nodiscard]] std::byte *stage_at(std::size_t member, std::uint64_t meeting,
                                      std::size_t nbytes) const {
        std::byte *const room = rooms_[member] + meeting % 2 * room_bytes_;
        if (nbytes <= still_bytes) {
            return room;
        }
        constexpr std::size_t page_bytes = 4096;
        std::size_t const pace = (nbytes + page_bytes - 1) / page_bytes * page_bytes;
        std::size_t const num_stages = std::max<std::size_t>(1, room_bytes_ / pace);
        return room + meeting / 2 % num_stages * pace;
    }
    /// One of a member's two rooms, for who knows by other means when nobody reads there; at least
    /// small_stage_bytes each.
    [[nodiscard]] std::byte *room_of(std::size_t member, std::size_t which) const {
        return rooms_[member] + which * room_bytes_;
    }
    /// Collective, part of the call `call`: from now on stages of up to `stage_bytes`, in rooms of
    /// `room_bytes` if there is space for so much, if every member has space for two; else all stay
    /// with what they have, for good. One meeting, once per group.
    status grow_stages(const sync::call_signature &call, std::size_t stage_bytes,
                       std::size_t room_bytes);
    [[nodiscard]] bool may_grow() const { return !tried_to_grow_; }

    [[nodiscard]] sync::rendezvous &lines() { return rendezvous_; }
    [[nodiscard]] member_block &block_of(std::size_t member) const { return *blocks_[member]; }

    /// After the last meeting: waits until nobody touches this member's block any more. On error
    /// the block stays.
    status depart(const sync::call_signature &call);

private:
    void allocate_rooms(std::size_t stage_bytes, std::size_t room_bytes);
    [[nodiscard]] std::vector<std::byte *> meeting_areas() const;

    conduit::engine &engine_;
    workspace &space_;
    std::vector<world_rank> members_;
    group_rank self_;
    std::vector<member_block *> blocks_;
    std::uint64_t own_offset_;
    sync::rendezvous rendezvous_;
    std::vector<std::byte *> rooms_; ///< first of each member's two
    std::size_t room_bytes_ = member_block::small_stage_bytes;
    std::size_t stage_bytes_ = member_block::small_stage_bytes;
    std::array<best_way, 15> stage_ways_; ///< by powers of two
    struct own_rooms {
        std::uint64_t offset = 0;
        std::size_t room_bytes = 0; ///< 0: none
    } large_;
    bool tried_to_grow_ = false;
    /// Until every member has departed somebody may still read it. A group that is alive at the
    /// program's end keeps it for good: slow members still look at the lines of the last meeting.
    bool keep_memory_ = true;
};

} // namespace diomp::group
