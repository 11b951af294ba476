// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The key-value exchange of a job on this machine: each fence delivers all new values to all ranks.
#pragma once

#include "core/exchange.h"
#include "core/node.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace diomp::run {

class local_exchange final : public exchange_events {
public:
    local_exchange(node &node_of_ranks, int ranks) : node_(node_of_ranks), values_(0, ranks) {}

    void on_entries(std::vector<launch::local::entry> entries) override {
        values_.add(std::move(entries));
    }
    status on_fence(int rank) override {
        auto complete = values_.enter_fence(rank);
        DIOMP_TRY(complete);
        if (complete.value()) {
            node_.send_to_all(release_packets(values_.take_entries(), false));
        }
        return {};
    }
    /// The fence has delivered all values, so the runtime never sends `get`.
    status on_get(int /*rank*/, int owner, std::string key) override {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("a request for the value '{}' of rank {}", key, owner));
    }

private:
    node &node_;
    exchange values_;
};

} // namespace diomp::run
