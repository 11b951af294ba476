// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What all groups of a rank share.
#pragma once

#include "group/group.h"
#include "group/internal/matcher.h"
#include "transport/conduit.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace diomp::group {

/// Makes groups, and what a member contributes to a new one. Thread-safe.
class group_factory {
public:
    /// Create before engine.start(). The arguments must outlive the factory.
    group_factory(messaging::engine &engine, workspace &space, world_rank self)
        : engine_(engine), space_(space), self_(self),
          own_slot_(engine.transport().direct_base(self)), messages_(engine, space, own_slot_) {}

    [[nodiscard]] world_rank self() const { return self_; }
    [[nodiscard]] workspace &space() { return space_; }
    [[nodiscard]] std::byte *own_slot() const { return own_slot_; }
    /// Before the first group.
    void set_nodes(const node_map &nodes, std::span<const world_rank> ranks) {
        nodes_ = nodes;
        ranks_ = ranks;
    }

    /// The member's block for a new group; nullopt if there is no space.
    std::optional<std::uint64_t> allocate_block() {
        return diomp::group::allocate_block(space_, own_slot_);
    }
    /// Id 0 is the world's.
    std::uint64_t next_id() {
        return (self_.index() + 1) << 40 | num_ids_.fetch_add(1, std::memory_order_relaxed);
    }
    std::unique_ptr<group> make(group_description description) {
        share_members(description);
        return std::make_unique<group>(engine_, space_, messages_, nodes_, std::move(description));
    }

private:
    /// Consecutive members are a part of the table of the world.
    void share_members(group_description &description) const {
        auto const &members = description.members;
        bool const are_consecutive =
            !members.empty() && std::ranges::adjacent_find(members, [](auto a, auto b) {
                                    return b.value() != a.value() + 1;
                                }) == members.end();
        if (are_consecutive && members.back().index() < ranks_.size()) {
            description.shared_members = ranks_.subspan(members.front().index(), members.size());
            description.members = {};
        }
    }

    messaging::engine &engine_;
    workspace &space_;
    world_rank self_;
    std::byte *own_slot_;
    matcher messages_;
    node_map nodes_;
    std::span<const world_rank> ranks_; ///< 0, 1, 2 and so on
    std::atomic<std::uint64_t> num_ids_{0};
};

/// OMPX_ERR_NOMEM: a member of a new group has no space for its block.
error no_space_at(world_rank rank);

} // namespace diomp::group
