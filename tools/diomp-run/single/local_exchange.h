// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The key-value exchange of a job on this machine: each fence delivers the new values to all ranks,
// in a large job those of rank 0, and ranks request the others.
#pragma once

#include "core/exchange.h"
#include "core/node.h"
#include "core/rank_failures.h"
#include "core/value_store.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace diomp::run {

class local_exchange final : public exchange_events {
public:
    /// Reports fences to `failures`.
    local_exchange(node &node_of_ranks, rank_failures &failures, int ranks)
        : node_(node_of_ranks), failures_(failures), values_(0, ranks) {}

    void on_entries(std::vector<launch::local::entry> entries) override {
        values_.add(std::move(entries));
    }
    status on_fence(int rank) override {
        auto complete = values_.enter_fence(rank);
        DIOMP_TRY(complete);
        if (complete.value()) {
            failures_.on_fence_done();
            auto entries = values_.take_entries();
            if (!is_all_delivered()) {
                store_.stage(entries);
            }
            bool const invalidate = store_.commit();
            node_.send_to_all(release_packets(std::move(entries), values_.ranks(), invalidate));
        } else {
            failures_.on_fence([this] { return describe_late(); });
        }
        return {};
    }
    status on_get(int rank, int owner, std::string key) override {
        if (is_all_delivered()) {
            return error(OMPX_ERR_SYSTEM,
                         fmt::format("a request for the value '{}' of rank {}", key, owner));
        }
        node_.send(rank, value_packet(store_.find(owner, key)));
        return {};
    }

private:
    [[nodiscard]] std::vector<std::string> describe_late() const {
        std::vector<std::string> late;
        for (int const rank : values_.late_ranks()) {
            late.push_back(node_.describe_rank(rank));
        }
        return late;
    }
    [[nodiscard]] bool is_all_delivered() const {
        return values_.ranks() <= launch::local::max_delivered_ranks;
    }

    node &node_;
    rank_failures &failures_;
    exchange values_;
    value_store store_; ///< unless all values are delivered
};

} // namespace diomp::run
