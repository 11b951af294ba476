// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The members of a group on one node: they meet and exchange data in memory that all of them load
// and store. A group on one node is nothing else.
//
// Glossary: block: the memory of one member for one group, in the runtime's part of its slot,
// loadable by all members of the node: the lines of the rendezvous and a small stage. stage: where
// a member puts data for the others; there are two per member, used by even and odd meetings.
// place: the position of a member among those of its node. workspace: where blocks come from.
//
// The stage's rule, on which every collective stands: what a member writes into its stage for the
// coming meeting (next_stage) may be read by all after that meeting, until they enter the next one.
// Then the other stage is in use, so nobody waits for readers.
#pragma once

#include "base/two_ways.h"
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
    virtual std::optional<std::uint64_t> allocate(std::size_t nbytes) = 0;
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

    [[nodiscard]] std::size_t stage_bytes() const { return stage_bytes_; }
    /// How this member best writes its stage in calls on blocks of this size: 0, through the
    /// caches, or 1, past them. nullptr: it does not matter.
    [[nodiscard]] two_ways *stage_ways(std::size_t block_bytes) {
        constexpr std::size_t least_bytes = std::size_t{16} << 10;
        if (block_bytes < least_bytes) {
            return nullptr;
        }
        auto const index = static_cast<std::size_t>(std::bit_width(block_bytes / least_bytes) - 1);
        return &stage_ways_[std::min(index, stage_ways_.size() - 1)];
    }
    /// Own stage for the coming meeting.
    [[nodiscard]] std::byte *next_stage() const {
        return stage_at(self_.index(), rendezvous_.epoch() + 1);
    }
    /// A member's stage of the last meeting.
    [[nodiscard]] std::byte *stage_of(std::size_t member) const {
        return stage_at(member, rendezvous_.epoch());
    }
    /// Collective, part of the call `call`: larger stages from now on, if every member has the
    /// space for it; else all stay with what they have, for good. One meeting, once per group.
    status grow_stages(const sync::call_signature &call, std::size_t nbytes);
    [[nodiscard]] bool may_grow() const { return !tried_to_grow_; }

    [[nodiscard]] sync::rendezvous &lines() { return rendezvous_; }
    [[nodiscard]] member_block &block_of(std::size_t member) const { return *blocks_[member]; }

    /// After the last meeting: waits until nobody touches this member's block any more. On error
    /// the block stays.
    status depart(const sync::call_signature &call);

private:
    [[nodiscard]] std::byte *stage_at(std::size_t member, std::uint64_t meeting) const {
        return stages_[member] + meeting % 2 * stage_bytes_;
    }
    [[nodiscard]] std::vector<std::byte *> meeting_areas() const;

    conduit::engine &engine_;
    workspace &space_;
    std::vector<world_rank> members_;
    group_rank self_;
    std::vector<member_block *> blocks_;
    std::uint64_t own_offset_;
    sync::rendezvous rendezvous_;
    std::vector<std::byte *> stages_; ///< first of each member's two
    std::size_t stage_bytes_ = member_block::small_stage_bytes;
    std::array<two_ways, 12> stage_ways_; ///< by powers of two
    std::optional<std::uint64_t> large_stage_offset_;
    bool tried_to_grow_ = false;
    /// Until every member has departed somebody may still read it. A group that is alive at the
    /// program's end keeps it for good: slow members still look at the lines of the last meeting.
    bool keep_memory_ = true;
};

} // namespace diomp::group
