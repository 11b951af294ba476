// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an ompx_event_t points to: an operation in flight. Who completes it stores the outcome, then
// the state. For a transfer through the network that is whoever looks at the event (see
// transfers::advance): nobody else is interested.
#pragma once

#include "base/result.h"
#include "conduit/conduit.h"
#include "memory/memory.h"
#include "rma/direction.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace diomp::rma {

/// A transfer through the network, or a device's copy, that an event stands for. Lives as long as
/// the event: who gives up waiting still has it.
struct moving {
    conduit::completion count;
    world_rank peer;
    memory::place place;
    std::size_t nbytes = 0;
    std::chrono::steady_clock::time_point begin; ///< if somebody observes flights
    direction way = direction::put;
    /// Asks for the outcome of a device's copy; empty: it is the network's transfer.
    std::function<std::optional<status>()> copy;
    bool flush_due = false; ///< a put whose completion at the target nobody has asked for yet
};

} // namespace diomp::rma

/// Shared by its owner in the program and the operation; whoever lets go last deletes it.
struct ompx_event {
    using continuation = std::function<void(diomp::status)>;

    /// Any thread, once.
    void complete(diomp::status with) {
        outcome = std::move(with);
        done.store(true);
        run_continuation();
        release();
    }
    /// Calls `next` with the outcome when the event is complete: here, or in the thread that
    /// completes it. Takes the program's reference over. Not for transfers that somebody must
    /// advance.
    void then(continuation next) {
        next_.store(new continuation(std::move(next)));
        if (done.load()) {
            run_continuation();
        }
        release();
    }
    /// "waiting for ...", for messages.
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] bool is_done() const { return done.load(std::memory_order_acquire); }
    void release() {
        if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete this;
        }
    }

    diomp::status outcome;
    /// Null: completed by another thread. Shared with who asks whether memory is in use.
    std::shared_ptr<diomp::rma::moving> moving;
    std::atomic<bool> done{false};
    std::atomic<int> references{2};

private:
    // Both sides store before they load, so at least one of them finds the continuation.
    void run_continuation() {
        std::unique_ptr<continuation> const next(next_.exchange(nullptr));
        if (next != nullptr) {
            (*next)(std::move(outcome));
        }
    }

    std::atomic<continuation *> next_{nullptr};
};
