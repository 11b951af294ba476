// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A barrier between nodes after which each member has the payloads of all.
#pragma once

#include "sync/node_barrier.h"

#include <cstddef>
#include <span>
#include <vector>

namespace diomp::group {

class internode_comm;

/// One per member and group. Every member keeps a table of all payloads.
class payload_exchange {
public:
    explicit payload_exchange(internode_comm &internode) : internode_(internode) {}

    /// See group::arrive_and_wait.
    status run(const sync::call_signature &call, const sync::round_payload &payload);
    [[nodiscard]] const sync::round_payload &of(std::size_t member) const {
        return payloads_[member];
    }
    /// Frees the table.
    void forget() { std::vector<sync::round_payload>().swap(payloads_); }

private:
    void gather_on_node();
    status exchange_between_leaders();
    /// Broadcasts the leader's table to all members on the node. If the leader passes `valid` =
    /// false, all of them get OMPX_ERR_PEER.
    status bcast_on_node(bool valid);

    internode_comm &internode_;
    std::vector<sync::round_payload> payloads_; ///< [member], of the last round with payload
};

} // namespace diomp::group
