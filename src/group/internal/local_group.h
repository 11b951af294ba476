// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The members of a group on one node: they synchronize and exchange data in shared memory. A group
// on one node consists of this alone.
//
// Terms. block: the shared memory of one member for one group, in the runtime's part of its slot:
// the flag slots of the node barrier and small stage buffers. stage buffer: where a member puts
// data for the other members. buffer half: the memory for a member's stage buffers in even or in
// odd rounds of the barrier. local index: the position of a member among those of its node.
// workspace: the allocator of the blocks.
//
// The rule of the stage buffers, on which every collective relies: data that a member writes into
// its stage buffer for the coming round (next_stage_buffer) may be read by all members after that
// round, until they arrive for the next one. The next round uses the other half, so no writer waits
// for readers.
#pragma once

#include "group/internal/stage_memory.h"
#include "sync/node_barrier.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace diomp::group {

class attached_memory;
class workspace;

/// A member that agrees to a call but cannot do its part, and a value that says why.
struct veto {
    std::uint32_t member = 0;
    std::uint64_t detail = 0;
};

/// Layout of a member's block. Only the part before the stage buffers must be zeroed.
struct member_block {
    std::byte barrier_area[sync::node_barrier::area_bytes];
    /// Number of members that will not access this block again (ompx_group_free).
    alignas(cache_line_bytes) std::atomic<std::uint64_t> departed;
    /// World rank, plus one, that the owner waits for as a call leader; 0: none.
    std::atomic<std::uint64_t> awaited_rank;
    alignas(cache_line_bytes) std::byte stage_buffers[2][stage_memory::small_bytes];
};

/// Allocates a zeroed block in the caller's own slot; nullopt if there is no space.
std::optional<std::uint64_t> allocate_block(workspace &space, std::byte *slot);

/// Used by the thread that holds the group's call lock. Lists are indexed by local index.
class local_group {
public:
    /// Every member must be directly mapped. `offsets`: position of each block in its slot.
    local_group(messaging::engine &engine, workspace &space, std::vector<world_rank> members,
                std::span<const std::uint64_t> offsets, std::size_t self);
    ~local_group();
    local_group(const local_group &) = delete;
    local_group &operator=(const local_group &) = delete;

    [[nodiscard]] std::size_t size() const { return members_.size(); }
    [[nodiscard]] group_rank self() const { return self_; }
    [[nodiscard]] std::span<const world_rank> members() const { return members_; }

    /// Call its wait_all_arrived before the first write to a stage buffer in a call: after arrivals
    /// without a wait, other members may still read it.
    [[nodiscard]] sync::node_barrier &barrier() { return barrier_; }
    [[nodiscard]] const sync::node_barrier &barrier() const { return barrier_; }

    /// Call at the begin of a call of several rounds on a group on one node, after
    /// call_scope: waits as wait_all_arrived does. After a restart the members forget
    /// what they have agreed on in calls, which some of them may have given up.
    status begin_call();
    /// They keep it: the members are those of one node of a group that has agreed on it.
    void keep_agreements() { known_restarts_.reset(); }

    [[nodiscard]] stage_memory &stage_buffers() { return stage_buffers_; }
    /// Own stage buffer for the coming round (stage_memory::at).
    [[nodiscard]] std::byte *next_stage_buffer(std::size_t nbytes = 0) const {
        return stage_buffers_.at(self_.index(), barrier_.epoch() + 1, nbytes);
    }
    /// A member's stage buffer of the last round; `nbytes` as passed to next_stage_buffer.
    [[nodiscard]] std::byte *stage_buffer_of(std::size_t member, std::size_t nbytes = 0) const {
        return stage_buffers_.at(member, barrier_.epoch(), nbytes);
    }
    /// The other members' private memory.
    [[nodiscard]] attached_memory &attached() { return *attached_; }
    /// Whether this member can access the private memory of all others.
    [[nodiscard]] bool can_attach();
    /// Collective, part of the call `call`, once per group, one barrier round. If every member has
    /// space for two halves, stage buffers hold up to `stage_buffer_bytes` from now on, in halves
    /// of `buffer_half_bytes` if there is space for that; else the sizes stay as they are for good.
    status grow_stage_buffers(const sync::call_signature &call, std::size_t stage_buffer_bytes,
                              std::size_t buffer_half_bytes);

    [[nodiscard]] member_block &block_of(std::size_t member) const { return *blocks_[member]; }

    /// After the last round: blocks until no other member accesses this member's block. On error
    /// the block is never freed.
    status depart(const sync::call_signature &call);

private:
    messaging::engine &engine_;
    workspace &space_;
    std::vector<world_rank> members_;
    group_rank self_;
    std::vector<member_block *> blocks_;
    std::uint64_t own_offset_;
    sync::node_barrier barrier_;
    stage_memory stage_buffers_;
    std::unique_ptr<attached_memory> attached_;
    std::optional<std::uint64_t> known_restarts_ = 0; ///< nullopt: keep_agreements
    /// Other members may read the block until all have departed. A group that exists at the
    /// program's end never frees it: slow members still poll the flag slots of the last round.
    bool keep_memory_ = true;
};

} // namespace diomp::group
