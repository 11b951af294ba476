// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The key-value exchange of a job on this machine: each fence delivers the new values to all ranks,
// in a large job those of rank 0, and ranks request the others.
#pragma once

#include "core/exchange.h"
#include "core/node.h"
#include "core/value_store.h"

#include <fmt/format.h>

#include <string>
#include <utility>
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
            auto entries = values_.take_entries();
            if (!is_all_delivered()) {
                store_.stage(entries);
            }
            bool const invalidate = store_.commit();
            node_.send_to_all(release_packets(std::move(entries), values_.ranks(), invalidate));
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
    [[nodiscard]] bool is_all_delivered() const {
        return values_.ranks() <= launch::local::max_delivered_ranks;
    }

    node &node_;
    exchange values_;
    value_store store_; ///< unless all values are delivered
};

} // namespace diomp::run
