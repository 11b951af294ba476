// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The engine: active messages with handlers on top of a conduit, the progress thread that serves
// them while the program computes, and the wait functions of the runtime.
//
// A wait spins briefly, then yields the core, then sleeps on the conduit's doorbell; it sleeps at
// once if another program uses the core (messaging/internal/core_monitor.h). It serves messages all
// the time, so two ranks that wait for each other's handlers both make progress. Each wait
// describes its purpose: the sentence is used in the warning after DIOMP_WARN_AFTER and in the
// error after DIOMP_TIMEOUT.
#pragma once

#include "base/cpu.h"
#include "base/function_ref.h"
#include "base/sanitizer.h"
#include "messaging/internal/callbacks.h"
#include "messaging/internal/core_monitor.h"
#include "messaging/internal/outbox.h"
#include "transport/types.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace diomp::transport {
class conduit;
}

namespace diomp::messaging {

struct engine_options {
    int spin_count = 1000; ///< maximum polls before yielding
    double timeout_s = 0;  ///< 0: no limit
    double warn_after_s = 60;
    bool progress_thread = true;
    bool is_oversubscribed = false; ///< more ranks than cores: waits start by yielding
};

using handler = std::function<void(const transport::message &)>;

/// Why all waits fail from now on. Thread-safe.
class wait_failure {
public:
    /// Has set() call `then`, which must not block. Call before the engine starts.
    void on_set(std::function<void()> then) { then_ = std::move(then); }
    void set(std::string reason);
    [[nodiscard]] bool is_set() const { return is_set_.load(std::memory_order_acquire); }
    [[nodiscard]] std::string reason() const;

private:
    std::atomic<bool> is_set_{false};
    mutable std::mutex mutex_;
    std::string reason_;
    std::function<void()> then_;
};

/// Thread-safe, except add_handler (start-up only). Handlers must not block and must not take locks
/// that are held across a wait.
class engine {
public:
    engine(transport::conduit &conduit, const engine_options &options);
    ~engine();
    engine(const engine &) = delete;
    engine &operator=(const engine &) = delete;

    /// Handlers of send_long must follow am_long_handler: they must not send. For handlers with a
    /// `recv_buffer` callback, conduits that can choose call it to get the destination of the data.
    [[nodiscard]] transport::handler_id
    add_handler(handler function, transport::recv_buffer_callback recv_buffer = {});
    /// Starts the progress thread. Add all handlers before.
    void start();
    /// Stops the progress thread. Messages are then served only by waiting threads.
    void stop();

    /// Sends a message. Never blocks: if the peer's queue is full, the message is queued here, in
    /// order, until there is space.
    void send(world_rank peer, transport::handler_id handler, std::span<const std::byte> payload);
    template <typename Struct>
    void send(world_rank peer, transport::handler_id handler, const Struct &payload) {
        static_assert(std::is_trivially_copyable_v<Struct>);
        send(peer, handler,
             std::span<const std::byte>(std::as_bytes(std::span<const Struct>(&payload, 1))));
    }

    /// See am_long_transport::send_long. false for direct peers.
    result<bool> send_long(world_rank peer, transport::handler_id handler,
                           std::span<const std::byte> payload, std::span<const std::byte> data,
                           transport::completion &source_free);

    /// See am_long_transport::put_with_message. false for direct peers.
    result<bool> put_with_message(world_rank peer, std::uint64_t remote_address,
                                  std::span<const std::byte> source, transport::handler_id handler,
                                  std::span<const std::byte> payload,
                                  transport::completion &source_free);

    /// Serves waiting messages; true if there were any.
    bool poll();

    /// Waits until ready() is true, for conditions that other ranks or threads make true by writing
    /// memory. `describe` names what is missing; it is called only if the wait gets long. ready()
    /// is called any number of times until it returns true, and never after that: it may consume
    /// what it finds, or send. Errors: OMPX_ERR_TIMEOUT, OMPX_ERR_PEER; then ready() has not
    /// returned true.
    template <typename Ready, typename Describe>
    status wait(Ready &&ready, Describe &&describe) {
        int const spins = core_.polls();
        for (int i = 0; i < spins; ++i) {
            if (ready()) {
                if (i > 0) { // i == 0 says nothing about where the other rank runs
                    core_.note_success();
                }
                return {};
            }
            cpu_relax();
        }
        if (spins == 0 && !core_.should_sleep()) {
            // The awaited rank most likely runs on this core, and has written when the yield
            // returns.
            for (int i = 0; i < quick_yields; ++i) {
                if (ready()) {
                    return {};
                }
                if (core_.yield(i == 0)) {
                    break;
                }
            }
        }
        return wait_slowly(ready, describe, 0, transport::wait_kind::store);
    }

    /// wait() for conditions that a handler of this rank makes true: polls from the start.
    template <typename Ready, typename Describe>
    status wait_for_message(Ready &&ready, Describe &&describe) {
        return wait_slowly(ready, describe, core_.polls(), transport::wait_kind::message);
    }

    /// wait_for_network() for conditions that only handlers and completions of this rank make true:
    /// a long wait sleeps until one of them has run, so that thousands of waiting ranks cost
    /// nothing. Stores of other ranks, and what a poll of a device would find, need the others.
    template <typename Ready, typename Describe>
    status wait_for_handler(Ready &&ready, Describe &&describe, int spins = 0) {
        return wait_slowly(ready, describe, spins, transport::wait_kind::handler);
    }

    /// wait() for operations of other nodes, which take longer than a yield in any case. Yields the
    /// core early and often, after each poll if another thread has used the core lately.
    template <typename Ready, typename Describe>
    status wait_for_network(Ready &&ready, Describe &&describe) {
        return wait_slowly(ready, describe, 0, transport::wait_kind::message);
    }

    /// Call after a store to memory for which a rank of this node may wait by wait(): whether
    /// threads of the node sleep, so that wake_for_store() is needed. Costs one load.
    [[nodiscard]] bool needs_wake() const {
        return store_sleepers_.load(std::memory_order_relaxed) > 0;
    }
    /// Wakes the rank's threads that wait for a store.
    void wake_for_store(world_rank peer) {
        if (needs_wake()) [[unlikely]] {
            wake_sleepers(peer);
        }
    }

    /// Wakes this rank's threads. Call after completing something that one of them may wait for by
    /// wait().
    void wake_waiters();

    /// Calls `then` once, in a thread that polls, after `count` is done. Any thread. `then` must
    /// not block; it may send and register further callbacks.
    void on_completion(std::shared_ptr<transport::completion> count, std::function<void()> then);
    /// Calls `then` once after is_over() has returned true. One thread at a time calls is_over(),
    /// which may send.
    void call_when(std::function<bool()> is_over, std::function<void()> then);

    /// Makes every later wait fail with this reason (a peer is lost).
    void fail_waits(std::string reason);
    [[nodiscard]] wait_failure &failure() { return failure_; }

    [[nodiscard]] transport::conduit &transport() { return conduit_; }
    [[nodiscard]] const engine_options &options() const { return options_; }
    /// Current number of polls before a wait gives its core away.
    [[nodiscard]] int spins() const { return core_.polls(); }

private:
    static constexpr int quick_yields = 3;

    struct registered_handler {
        handler function;
        transport::recv_buffer_callback find_buffer; ///< most are empty
    };

    void wake_sleepers(world_rank peer);
    /// Polls `spins` times, serving messages, before it starts to yield.
    status wait_slowly(function_ref<bool()> ready, function_ref<std::string()> describe, int spins,
                       transport::wait_kind what);
    void run_progress_thread(); ///< body of the progress thread

    transport::conduit &conduit_;
    engine_options options_;
    core_monitor core_;
    const std::atomic<std::uint32_t> &store_sleepers_;
    struct {
        std::atomic<int> polling{0};
        std::atomic<int> sleeping{0};
    } num_waiting_; ///< threads
    std::vector<registered_handler> handlers_;
    outbox outbox_;
    callbacks callbacks_;
    wait_failure failure_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

} // namespace diomp::messaging
