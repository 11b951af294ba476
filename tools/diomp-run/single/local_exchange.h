// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The key-value exchange of a job on this machine: each fence delivers all new values to all ranks.
#pragma once

#include "core/exchange.h"
#include "core/node.h"

#include <string>
#include <vector>

namespace diomp::run {

class local_exchange final : public exchange_events {
public:
    local_exchange(node &node_of_ranks, int ranks) : node_(node_of_ranks), values_(0, ranks) {}

    void on_entries(std::vector<launch::local::entry> entries) override {
        values_.add(std::move(entries));
    }
    status on_fence(int rank) override;
    status on_get(int rank, int owner, std::string key) override;

private:
    node &node_;
    exchange values_;
};

} // namespace diomp::run
