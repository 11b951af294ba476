// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Acknowledgements of operations by message whose caller does not wait.
#pragma once

#include "diomp/types.h"
#include "messaging/engine.h"
#include "rma/internal/ack_window.h"

#include <memory>

namespace diomp::rma {

/// Any thread. Create before engine.start().
class acknowledgements {
public:
    explicit acknowledgements(messaging::engine &engine);

    /// Operations of this rank.
    [[nodiscard]] ack_window &own() { return own_; }
    /// Takes the next number of the window; blocks while it is full.
    result<std::uint64_t> open();
    /// Waits until all operations that began before this call are acknowledged; returns the first
    /// failure since the last call.
    status wait();
    /// An event that is complete once the operation `number` is acknowledged; null if it is. A
    /// failure at the target is reported by the next wait(). `operation`: see pending_transfer.
    /// `source`, if not null, must be done too, and its failure is the event's outcome.
    ompx_event_t event_of(std::uint64_t number, world_rank peer, std::size_t nbytes,
                          const char *operation,
                          const std::shared_ptr<const transport::completion> &source = nullptr);

    /// Acknowledges an operation of another rank, at the target. Does not block.
    void send(world_rank requester, std::uint64_t number, int failure);

private:
    struct acknowledgement {
        std::uint64_t number = 0;
        std::int64_t failure = 0;
    };
    void on_acknowledgement(const transport::message &incoming);

    messaging::engine &engine_;
    ack_window own_;
    transport::handler_id handler_;
};

} // namespace diomp::rma
