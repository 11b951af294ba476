// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups of ranks that are threads: a workspace in each slot of the arena, a registry per rank.
#pragma once

#include "group/group.h"
#include "group/internal/workspace.h"
#include "group/registry.h"
#include "memory/heap.h"
#include "support/thread_ranks.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace diomp::test {

class arena_workspace final : public group::workspace {
public:
    explicit arena_workspace(std::size_t nbytes)
        : heap_(memory::heap::direction::from_front, nbytes) {}
    using group::workspace::allocate;
    /// Tests have little space; stages shall grow all the same.
    std::optional<std::uint64_t> allocate(std::size_t nbytes, std::size_t /*spare*/) override {
        std::lock_guard const guard(mutex_);
        return heap_.allocate(nbytes, 64, heap_.capacity_bytes());
    }
    void release(std::uint64_t slot_offset) override {
        std::lock_guard const guard(mutex_);
        heap_.release(slot_offset);
    }
    [[nodiscard]] bool contains(std::span<const std::byte>) const override { return false; }
    [[nodiscard]] std::size_t num_blocks() {
        std::lock_guard const guard(mutex_);
        return heap_.num_blocks();
    }

private:
    std::mutex mutex_;
    memory::heap heap_;
};

class thread_groups {
public:
    explicit thread_groups(int num_ranks, std::size_t slot_bytes = std::size_t{4} << 20,
                           std::size_t workspace_bytes = 0)
        : thread_groups(std::make_unique<thread_ranks>(num_ranks, slot_bytes), workspace_bytes) {}
    /// The workspaces take the first bytes of each slot, 0: all.
    /// node_of: [world rank], empty: all on one node.
    explicit thread_groups(std::unique_ptr<thread_ranks> ranks, std::size_t workspace_bytes = 0,
                           const std::vector<std::int32_t> &node_of = {})
        : ranks_(std::move(ranks)), node_of_(numbered(node_of)) {
        ranks_->place_on_nodes(node_of_);
        for (int rank = 0; rank < ranks_->size(); ++rank) {
            workspaces_.push_back(std::make_unique<arena_workspace>(
                workspace_bytes == 0 ? ranks_->arena().slot_bytes() : workspace_bytes));
            registries_.push_back(std::make_unique<group::group_registry>(
                ranks_->engine(world_rank{rank}), *workspaces_.back(), world_rank{rank},
                ranks_->size()));
            if (!registries_.back()->create_world(group::node_map(node_of_))) {
                throw std::bad_alloc();
            }
        }
    }

    [[nodiscard]] thread_ranks &ranks() { return *ranks_; }
    [[nodiscard]] int size() const { return ranks_->size(); }
    [[nodiscard]] group::group_registry &registry(world_rank rank) {
        return *registries_[rank.index()];
    }
    [[nodiscard]] arena_workspace &space(world_rank rank) { return *workspaces_[rank.index()]; }
    void run(const std::function<void(world_rank)> &body) { ranks_->run(body); }

private:
    /// Numbers the nodes in the order of their lowest ranks, as group::node_map has them.
    static std::vector<std::int32_t> numbered(const std::vector<std::int32_t> &node_of) {
        std::map<std::int32_t, std::int32_t> numbers;
        std::vector<std::int32_t> made;
        for (std::int32_t const node : node_of) {
            auto const next = static_cast<std::int32_t>(numbers.size());
            made.push_back(numbers.try_emplace(node, next).first->second);
        }
        return made;
    }

    std::unique_ptr<thread_ranks> ranks_;
    std::vector<std::int32_t> node_of_;
    std::vector<std::unique_ptr<arena_workspace>> workspaces_;
    std::vector<std::unique_ptr<group::group_registry>> registries_;
};

} // namespace diomp::test
