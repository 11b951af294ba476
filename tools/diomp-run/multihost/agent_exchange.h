// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The key-value exchange of one of several hosts: its ranks get the values of their own host with
// the fence, and request those of other hosts, which the agent gets from the head and caches.
#pragma once

#include "core/exchange.h"
#include "core/node.h"
#include "head_link.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace diomp::run {

class agent_exchange final : public exchange_events {
public:
    agent_exchange(head_link &head, node &node_of_ranks, const rank_block &block)
        : head_(head), node_(node_of_ranks), values_(block.first_rank, block.ranks) {}

    // Packets from the ranks.
    void on_entries(std::vector<launch::local::entry> entries) override {
        values_.add(std::move(entries));
    }
    status on_fence(int rank) override;
    status on_get(int rank, int owner, std::string key) override;

    // Frames from the head.
    void on_fence_done(bool invalidate);
    void on_value(frame_reader &frame);

private:
    using value_key = std::pair<int, std::string>; ///< owner, key

    head_link &head_;
    node &node_;
    exchange values_;
    std::vector<launch::local::entry> deferred_entries_; ///< published in a fence that other hosts
                                                         ///< have not reached yet
    std::map<value_key, std::string> cache_;             ///< values of other hosts' ranks
    std::map<value_key, std::vector<int>> pending_gets_; ///< ranks that wait for a value
};

} // namespace diomp::run
