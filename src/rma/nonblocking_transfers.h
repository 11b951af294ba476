// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers that may outlive their call: with an event, with a continuation, or implicit ones,
// which the next fence completes. For peers that are not remote the call does the whole transfer.
#pragma once

#include "base/function_ref.h"
#include "diomp/types.h"
#include "rma/event.h"
#include "rma/internal/implicit_ops.h"
#include "rma/options.h"

#include <chrono>
#include <functional>
#include <memory>
#include <span>

struct ompx_context;
namespace diomp::memory {
class address_space;
}

namespace diomp::messaging {
class engine;
}

namespace diomp::rma {

class blocking_transfers;
class box_walk;
struct context_table;
class remote_transfers;

/// Called once with the outcome, in the call that took it or later by a polling thread.
using continuation = std::function<void(status)>;

/// Any thread.
class nonblocking_transfers {
public:
    nonblocking_transfers(memory::address_space &space, messaging::engine &engine,
                          blocking_transfers &blocking, remote_transfers &remote,
                          transfer_observer on_transfer_complete);
    ~nonblocking_transfers();
    nonblocking_transfers(const nonblocking_transfers &) = delete;
    nonblocking_transfers &operator=(const nonblocking_transfers &) = delete;

    /// *event is null if the transfer is complete on return. The local buffer belongs to the
    /// transfer until completion. With a null `event` the next fence completes it.
    result<path> start_put(world_rank peer, void *remote, const void *local, std::size_t nbytes,
                           ompx_event_t *event) {
        return start(direction::put, peer, remote, const_cast<void *>(local), nbytes, event);
    }
    result<path> start_get(world_rank peer, const void *remote, void *local, std::size_t nbytes,
                           ompx_event_t *event) {
        return start(direction::get, peer, remote, local, nbytes, event);
    }
    /// The remote side is located already. `local_done`, if not null, receives the completion of
    /// the local buffer.
    result<path> start_at(direction dir, world_rank peer, const memory::location &location,
                          void *local, std::size_t nbytes, ompx_event_t *event,
                          local_completion *local_done = nullptr);
    /// A put or get of a box at a remote rank, whose remote side is located already; see start_at.
    result<path> start_box_at(direction dir, world_rank peer, const memory::location &location,
                              void *local, const box_walk &walk, ompx_event_t *event);
    /// Waits until these are done, and calls `progress` meanwhile. Failures are reported by the
    /// transfers' events and fences.
    status wait_for_local_completion(std::span<const local_completion> completions,
                                     function_ref<void()> progress);
    /// Completes the event if its transfer has arrived. To be called before each test of an event,
    /// by one thread at a time.
    void advance(ompx_event &event);
    /// Waits until the event is complete. An operation of another thread ends by limits of its own,
    /// and its error says which rank is missing: it gets up to twice DIOMP_TIMEOUT for that.
    status wait(ompx_event &event);
    /// Waits by `wait`, any number of times, for operations of other threads, with these limits.
    /// `is_done` may be called after it has returned true.
    status wait_for_operation(function_ref<status()> wait, function_ref<bool()> is_done);
    /// If the call fails, `then` is never called.
    result<path> put_then(world_rank peer, void *remote, const void *local, std::size_t nbytes,
                          continuation then) {
        return move_then(direction::put, peer, remote, const_cast<void *>(local), nbytes,
                         std::move(then));
    }
    result<path> get_then(world_rank peer, const void *remote, void *local, std::size_t nbytes,
                          continuation then) {
        return move_then(direction::get, peer, remote, local, nbytes, std::move(then));
    }
    /// A transfer as part of a context, which complete() completes, puts at their targets.
    result<path> start_in(ompx_context &context, direction dir, world_rank peer, const void *remote,
                          void *local, std::size_t nbytes);
    /// Makes the operation of an event part of a context; null: it is complete.
    void keep_in(ompx_context &context, ompx_event_t event);
    status complete(ompx_context &context);
    /// complete() for each context; no other thread may use any.
    status complete_contexts();
    [[nodiscard]] context_table &contexts() { return *contexts_; }
    /// Waits for the implicit transfers that began before this call.
    status wait_for_implicit();

private:
    result<path> start(direction dir, world_rank peer, const void *remote, void *local,
                       std::size_t nbytes, ompx_event_t *event);
    result<path> start_implicit(implicit_ops &into, direction dir, world_rank peer,
                                const memory::location &location, void *local, std::size_t nbytes,
                                local_completion *local_done);
    /// Releases the context's events of complete operations.
    void take_complete(ompx_context &context);
    /// Blocks until the operations of the context's events are complete.
    status wait_for_events(ompx_context &context);
    /// Whether the start of an implicit transfer starts its flush.
    [[nodiscard]] bool is_flushed_at_once(std::size_t nbytes) const;
    /// Waits for the runs that have started of a box of which one could not start: they still use
    /// the caller's array.
    void abandon(const std::shared_ptr<transport::completion> &count);
    result<path> move_then(direction dir, world_rank peer, const void *remote, void *local,
                           std::size_t nbytes, continuation then);
    /// Begin of a transfer for the observer; unset without one.
    [[nodiscard]] std::chrono::steady_clock::time_point now_if_observed() const {
        return on_complete_ ? std::chrono::steady_clock::now()
                            : std::chrono::steady_clock::time_point{};
    }

    memory::address_space &space_;
    messaging::engine &engine_;
    blocking_transfers &blocking_;
    remote_transfers &remote_;
    implicit_ops implicit_;
    std::unique_ptr<context_table> contexts_;
    transfer_observer on_complete_; ///< for the trace; empty: no trace
};

} // namespace diomp::rma
