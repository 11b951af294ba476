// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The object behind an ompx_event_t: an operation in flight. The completing thread stores the
// outcome, then the state. A transfer through the network is completed by the thread that tests the
// event (see nonblocking_transfers::advance).
#pragma once

#include "base/result.h"
#include "diomp/types.h"
#include "memory/location.h"
#include "rma/path.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace diomp::rma {

/// The operation of an event that completes by polling. Lives as long as the event,
/// also after a wait that failed.
struct pending_transfer {
    transport::completion count;
    world_rank peer;
    memory::location location;
    std::size_t nbytes = 0;
    std::chrono::steady_clock::time_point begin; ///< set if transfers are traced
    direction dir = direction::put;
    /// Polls the outcome of a device copy, or of an operation that the target acknowledges; empty
    /// for a transfer through the network.
    std::function<std::optional<status>()> poll_outcome;
    /// Blocks until the outcome is known; empty: polling finds it.
    std::function<status()> wait_outcome;
    bool flush_due = false;          ///< a put without a flush so far
    const char *operation = nullptr; ///< a literal, "an atomic operation"; null: as `dir`
};

/// Completion of the local buffer: reusable once done. Null if it is reusable already.
using local_completion = std::shared_ptr<const transport::completion>;

} // namespace diomp::rma

/// Shared by the program and the operation; the last release() deletes it. The memory of events is
/// never returned and is reused late, so that check() finds a copy of an old event.
struct ompx_event {
    using continuation = std::function<void(diomp::status)>;

    static void *operator new(std::size_t nbytes);
    static void operator delete(void *memory) noexcept;
    /// OMPX_ERR_ARG unless a value of the program, which may be anything but null, is an event that
    /// it may still wait for. Any thread, does not block.
    static diomp::status check(const ompx_event *event);

    /// Completes the event and drops the operation's reference. Any thread, once.
    void complete(diomp::status with) {
        outcome = std::move(with);
        done.store(true);
        run_continuation();
        release();
    }
    /// Completes the event if its operation has a wait of its own (pending_transfer::wait_outcome);
    /// otherwise returns at once. Blocks.
    void block() {
        if (pending_transfer != nullptr && pending_transfer->wait_outcome && !is_done()) {
            complete(pending_transfer->wait_outcome());
        }
    }
    /// Calls `next` with the outcome when the event is complete: in this call, or in the thread
    /// that completes it. Takes over the program's reference. Not for transfers that need
    /// nonblocking_transfers::advance.
    void then(continuation next) {
        next_.store(new continuation(std::move(next)));
        if (done.load()) {
            run_continuation();
        }
        release_by_program();
    }
    /// release() of the program's reference, at the end of a wait: check() fails from now on.
    void release_by_program();
    /// "waiting for ...", for error messages.
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] bool is_done() const { return done.load(std::memory_order_acquire); }
    void release() {
        if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete this;
        }
    }

    diomp::status outcome;
    /// Null: completed by another thread. Shared with the checks for memory in use.
    std::shared_ptr<diomp::rma::pending_transfer> pending_transfer;
    const char *operation = nullptr; ///< of another thread: a literal, "ompx_bcast"
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
