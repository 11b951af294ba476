// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queues of GPI-2: their assignment to peers, and the completion of their operations.
#pragma once

#include "transport/gaspi/peer.h"

namespace diomp::transport::gaspi {

/// Under the lock of the network.
class queue_pool {
public:
    using outcome = gaspi_queue::outcome;

    explicit queue_pool(work_segment &work);

    /// The peer's queue of this kind, assigned on first use; nullptr if none has space.
    [[nodiscard]] gaspi_queue *find(peer &at, queue_kind kind);
    /// The peer's message queue for data. nullptr also if no other message queue is free: messages
    /// to other peers must not wait for this data.
    [[nodiscard]] gaspi_queue *find_for_data(peer &to);
    /// Records that the peer's connection is lost if the operation failed. Returns `tried`.
    outcome check(peer &at, outcome tried);
    /// Completes operations that have ended. True if there were any.
    bool advance();
    /// Ends the operations of a lost peer with an error.
    void fail(peer &lost);
    /// Peers whose connection was lost since the last call.
    [[nodiscard]] std::vector<peer *> take_broken() { return std::exchange(broken_, {}); }

private:
    bool advance(gaspi_queue &at);
    void complete(peer &at, const operation &over, int code);

    work_segment &work_;
    std::deque<gaspi_queue> queues_;
    std::vector<peer *> broken_; ///< to be declared failed after the lock is released
};

} // namespace diomp::transport::gaspi
