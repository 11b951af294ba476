// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/local_group.h"

#include <fmt/core.h>

#include <cstring>

namespace diomp::group {
namespace {

std::vector<member_block *> locate_blocks(messaging::engine &engine,
                                          std::span<const world_rank> members,
                                          std::span<const std::uint64_t> offsets) {
    std::vector<member_block *> blocks;
    blocks.reserve(members.size());
    for (std::size_t member = 0; member < members.size(); ++member) {
        std::byte *const slot = engine.transport().direct_base(members[member]);
        blocks.push_back(reinterpret_cast<member_block *>(slot + offsets[member]));
    }
    return blocks;
}

} // namespace

std::optional<std::uint64_t> allocate_block(workspace &space, std::byte *slot) {
    std::optional<std::uint64_t> const offset = space.allocate(sizeof(member_block));
    if (offset) {
        std::memset(slot + *offset, 0, offsetof(member_block, stage_buffers));
    }
    return offset;
}

local_group::local_group(messaging::engine &engine, workspace &space,
                         std::vector<world_rank> members, std::span<const std::uint64_t> offsets,
                         std::size_t self)
    : engine_(engine), space_(space), members_(std::move(members)), self_(static_cast<int>(self)),
      blocks_(locate_blocks(engine, members_, offsets)), own_offset_(offsets[self]),
      barrier_(engine, barrier_areas(), members_, self_) {
    for (member_block *const block : blocks_) {
        buffer_halves_.push_back(block->stage_buffers[0]);
    }
}

local_group::~local_group() {
    if (keep_memory_) {
        return;
    }
    if (large_buffers_.buffer_half_bytes > 0) {
        space_.release(large_buffers_.offset);
    }
    space_.release(own_offset_);
}

std::vector<std::byte *> local_group::barrier_areas() const {
    std::vector<std::byte *> areas;
    areas.reserve(blocks_.size());
    for (member_block *const block : blocks_) {
        areas.push_back(block->barrier_area);
    }
    return areas;
}

// Leaves enough space for further groups and for stage buffers of the next ones.
void local_group::allocate_buffer_halves(std::size_t stage_buffer_bytes,
                                         std::size_t buffer_half_bytes) {
    constexpr std::size_t left_free = 8; // times the size of the allocation
    for (std::size_t const nbytes :
         {std::max(buffer_half_bytes, stage_buffer_bytes), stage_buffer_bytes}) {
        if (auto const offset = space_.allocate(2 * nbytes, left_free * 2 * nbytes)) {
            large_buffers_ = {*offset, nbytes};
            return;
        }
    }
}

status local_group::grow_stage_buffers(const sync::call_signature &call,
                                       std::size_t stage_buffer_bytes,
                                       std::size_t buffer_half_bytes) {
    if (large_buffers_.buffer_half_bytes == 0) {
        allocate_buffer_halves(stage_buffer_bytes, buffer_half_bytes);
    }
    DIOMP_TRY(arrive_and_wait(call, {large_buffers_.buffer_half_bytes, large_buffers_.offset}));
    tried_to_grow_stage_buffers_ = true;
    std::vector<std::byte *> buffer_halves;
    std::uint64_t smallest = large_buffers_.buffer_half_bytes;
    for (std::size_t member = 0; member < size(); ++member) {
        const sync::round_payload &payload = payload_of(member);
        smallest = std::min(smallest, payload[0]);
        buffer_halves.push_back(engine_.transport().direct_base(members_[member]) + payload[1]);
    }
    if (smallest > 0) {
        buffer_halves_ = std::move(buffer_halves);
        buffer_half_bytes_ = smallest;
        stage_buffer_bytes_ = stage_buffer_bytes;
    }
    return {};
}

// After the last round a fast member must not free a flag slot that a slow one still polls. So each
// member counts itself as departed in every block, as its last access to that block.
status local_group::depart(const sync::call_signature &call) {
    for (member_block *const block : blocks_) {
        block->departed.fetch_add(1, std::memory_order_acq_rel);
    }
    for (world_rank const member : members_) {
        engine_.wake_for_store(member);
    }
    const std::atomic<std::uint64_t> &departed = blocks_[self_.index()]->departed;
    status left = engine_.wait(
        [&departed, this] { return departed.load(std::memory_order_acquire) == size(); },
        [this, &call] {
            return fmt::format("waiting for the other {} members to leave the group in {}",
                               size() - 1, describe(call));
        });
    keep_memory_ = !left.ok();
    return left;
}

} // namespace diomp::group
