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
//
// Stage buffers of more than `max_fixed_stage_bytes` rotate through their half if it is large. A
// cache line that a reader still has in its cache must be fetched from there before it can be
// written again, which costs 10 ns between cores that share a cache and 40 ns between others. With
// two halves of the size of the core's own cache, the line has been evicted by then.
#pragma once

#include "base/autotuner.h"
#include "sync/node_barrier.h"

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

/// Allocates memory in the calling rank's own slot, as offsets from its start.
class workspace {
public:
    virtual ~workspace() = default;
    /// nullopt also if less than `min_free_bytes` contiguous bytes would remain.
    virtual std::optional<std::uint64_t> allocate(std::size_t nbytes,
                                                  std::size_t min_free_bytes) = 0;
    std::optional<std::uint64_t> allocate(std::size_t nbytes) { return allocate(nbytes, 0); }
    virtual void release(std::uint64_t slot_offset) = 0;
    /// Whether the range lies in the caller's own slot, so that other nodes can put into it.
    [[nodiscard]] virtual bool contains(std::span<const std::byte> range) const = 0;
};

/// Layout of a member's block. Only the part before the stage buffers must be zeroed.
struct member_block {
    static constexpr std::size_t small_stage_bytes = 8192;

    std::byte barrier_area[sync::node_barrier::area_bytes];
    /// Number of members that will not access this block again (ompx_group_free).
    alignas(cache_line_bytes) std::atomic<std::uint64_t> departed;
    /// World rank, plus one, that the owner waits for as a call leader; 0: none.
    std::atomic<std::uint64_t> awaited_rank;
    alignas(cache_line_bytes) std::byte stage_buffers[2][small_stage_bytes];
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

    status arrive_and_wait(const sync::call_signature &call,
                           const sync::round_payload &payload = {},
                           std::span<const std::byte> inline_data = {}) {
        return barrier_.arrive_and_wait(call, payload, inline_data);
    }
    /// See sync::node_barrier::arrive and wait_for: for calls that need no stage buffer.
    status arrive(const sync::call_signature &call, const sync::round_payload &payload,
                  std::span<const std::byte> inline_data) {
        return barrier_.arrive(call, payload, inline_data);
    }
    status short_arrive(const sync::call_signature &call, std::uint64_t word) {
        return barrier_.short_arrive(call, word);
    }
    status wait_for_short(std::size_t member) {
        return barrier_.wait_for_short(group_rank{static_cast<int>(member)});
    }
    [[nodiscard]] const std::byte *short_data_of(std::size_t member) const {
        return barrier_.short_data_of(group_rank{static_cast<int>(member)});
    }
    status wait_for(std::size_t member) {
        return barrier_.wait_for(group_rank{static_cast<int>(member)});
    }
    /// Call before the first write to a stage buffer in a call: after arrivals without a wait,
    /// other members may still read it.
    status wait_all_arrived() { return barrier_.wait_all_arrived(); }
    [[nodiscard]] const sync::round_payload &payload_of(std::size_t member) const {
        return barrier_.payload_of(group_rank{static_cast<int>(member)});
    }
    [[nodiscard]] const std::byte *inline_data_of(std::size_t member) const {
        return barrier_.inline_data_of(group_rank{static_cast<int>(member)});
    }

    /// Smaller stage buffers do not rotate: their few lines are fetched back while the barrier
    /// runs, and faster than lines from a more distant cache.
    static constexpr std::size_t max_fixed_stage_bytes = 4096;
    [[nodiscard]] std::size_t stage_buffer_bytes() const { return stage_buffer_bytes_; }
    /// Learns how this member best writes its stage buffer for blocks of this size: 0, through the
    /// caches, or 1, with streaming stores. nullptr: too small to matter.
    [[nodiscard]] autotuner *stage_autotuner(std::size_t block_bytes) {
        constexpr std::size_t min_bytes = std::size_t{2} << 10;
        if (block_bytes < min_bytes) {
            return nullptr;
        }
        auto const index = static_cast<std::size_t>(std::bit_width(block_bytes / min_bytes) - 1);
        return &stage_autotuners_[std::min(index, stage_autotuners_.size() - 1)];
    }
    /// Own stage buffer for the coming round, of `nbytes`, at most stage_buffer_bytes(). Above
    /// max_fixed_stage_bytes the size must be equal on all members and in all rounds of a call.
    [[nodiscard]] std::byte *next_stage_buffer(std::size_t nbytes = 0) const {
        return stage_buffer_at(self_.index(), barrier_.epoch() + 1, nbytes);
    }
    /// A member's stage buffer of the last round; `nbytes` as passed to next_stage_buffer.
    [[nodiscard]] std::byte *stage_buffer_of(std::size_t member, std::size_t nbytes = 0) const {
        return stage_buffer_at(member, barrier_.epoch(), nbytes);
    }
    /// A member's stage buffer of any round.
    [[nodiscard]] std::byte *stage_buffer_at(std::size_t member, std::uint64_t round,
                                             std::size_t nbytes) const {
        std::byte *const half = buffer_halves_[member] + round % 2 * buffer_half_bytes_;
        if (nbytes <= max_fixed_stage_bytes) {
            return half;
        }
        constexpr std::size_t page_bytes = 4096;
        std::size_t const stride_bytes = (nbytes + page_bytes - 1) / page_bytes * page_bytes;
        std::size_t const num_stages = std::max<std::size_t>(1, buffer_half_bytes_ / stride_bytes);
        return half + round / 2 % num_stages * stride_bytes;
    }
    /// One of a member's two buffer halves, of at least small_stage_bytes each. The caller makes
    /// sure that no member still reads it.
    [[nodiscard]] std::byte *buffer_half_of(std::size_t member, std::size_t which) const {
        return buffer_halves_[member] + which * buffer_half_bytes_;
    }
    /// Collective, part of the call `call`, once per group, one barrier round. If every member has
    /// space for two halves, stage buffers hold up to `stage_buffer_bytes` from now on, in halves
    /// of `buffer_half_bytes` if there is space for that; else the sizes stay as they are for good.
    status grow_stage_buffers(const sync::call_signature &call, std::size_t stage_buffer_bytes,
                              std::size_t buffer_half_bytes);
    [[nodiscard]] bool may_grow_stage_buffers() const { return !tried_to_grow_stage_buffers_; }

    [[nodiscard]] sync::node_barrier &barrier() { return barrier_; }
    [[nodiscard]] member_block &block_of(std::size_t member) const { return *blocks_[member]; }

    /// After the last round: blocks until no other member accesses this member's block. On error
    /// the block is never freed.
    status depart(const sync::call_signature &call);

private:
    void allocate_buffer_halves(std::size_t stage_buffer_bytes, std::size_t buffer_half_bytes);
    [[nodiscard]] std::vector<std::byte *> barrier_areas() const;

    messaging::engine &engine_;
    workspace &space_;
    std::vector<world_rank> members_;
    group_rank self_;
    std::vector<member_block *> blocks_;
    std::uint64_t own_offset_;
    sync::node_barrier barrier_;
    std::vector<std::byte *> buffer_halves_; ///< the first of each member's two
    std::size_t buffer_half_bytes_ = member_block::small_stage_bytes;
    std::size_t stage_buffer_bytes_ = member_block::small_stage_bytes;
    std::array<autotuner, 15> stage_autotuners_; ///< by powers of two
    struct own_buffer_halves {
        std::uint64_t offset = 0;
        std::size_t buffer_half_bytes = 0; ///< 0: none
    } large_buffers_;
    bool tried_to_grow_stage_buffers_ = false;
    /// Other members may read the block until all have departed. A group that exists at the
    /// program's end never frees it: slow members still poll the flag slots of the last round.
    bool keep_memory_ = true;
};

} // namespace diomp::group
