// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/local_group.h"

#include <fmt/core.h>

#include <cstring>

namespace diomp::group {
namespace {

std::vector<member_block *> locate_blocks(conduit::engine &engine,
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
        std::memset(slot + *offset, 0, offsetof(member_block, stages));
    }
    return offset;
}

local_group::local_group(conduit::engine &engine, workspace &space, std::vector<world_rank> members,
                         std::span<const std::uint64_t> offsets, std::size_t self)
    : engine_(engine), space_(space), members_(std::move(members)), self_(static_cast<int>(self)),
      blocks_(locate_blocks(engine, members_, offsets)), own_offset_(offsets[self]),
      rendezvous_(engine, meeting_areas(), members_, self_) {
    for (member_block *const block : blocks_) {
        rooms_.push_back(block->stages[0]);
    }
}

local_group::~local_group() {
    if (keep_memory_) {
        return;
    }
    if (large_.room_bytes > 0) {
        space_.release(large_.offset);
    }
    space_.release(own_offset_);
}

std::vector<std::byte *> local_group::meeting_areas() const {
    std::vector<std::byte *> areas;
    areas.reserve(blocks_.size());
    for (member_block *const block : blocks_) {
        areas.push_back(block->meeting);
    }
    return areas;
}

// So much stays free that groups can be made, and the next ones have stages of some size.
void local_group::allocate_rooms(std::size_t stage_bytes, std::size_t room_bytes) {
    constexpr std::size_t left_free = 8; // times as much as is taken
    for (std::size_t const nbytes : {std::max(room_bytes, stage_bytes), stage_bytes}) {
        if (auto const offset = space_.allocate(2 * nbytes, left_free * 2 * nbytes)) {
            large_ = {*offset, nbytes};
            return;
        }
    }
}

status local_group::grow_stages(const sync::call_signature &call, std::size_t stage_bytes,
                                std::size_t room_bytes) {
    if (large_.room_bytes == 0) {
        allocate_rooms(stage_bytes, room_bytes);
    }
    DIOMP_TRY(meet(call, {large_.room_bytes, large_.offset}));
    tried_to_grow_ = true;
    std::vector<std::byte *> rooms;
    std::uint64_t smallest = large_.room_bytes;
    for (std::size_t member = 0; member < size(); ++member) {
        const sync::meeting_payload &told = payload_of(member);
        smallest = std::min(smallest, told[0]);
        rooms.push_back(engine_.transport().direct_base(members_[member]) + told[1]);
    }
    if (smallest > 0) {
        rooms_ = std::move(rooms);
        room_bytes_ = smallest;
        stage_bytes_ = stage_bytes;
    }
    return {};
}

// After the last meeting a fast member must not free the line that a slow one still polls. So each
// member tells every other that it has left, as its last access to that member's block.
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
