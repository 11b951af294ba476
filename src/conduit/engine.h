// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The engine: active messages with handlers on top of a conduit, the progress thread that serves
// them while the program computes, and the one way in which the runtime waits.
//
// Waiting spins briefly, then yields the core, then naps on the conduit's doorbell, at once where
// another program wants the core (conduit/core_monitor.h); messages are served all along, so two
// ranks that wait for each other's handlers both go on. A wait says what it is for: the sentence
// is used in the warning after DIOMP_WARN_AFTER and in the error after DIOMP_TIMEOUT.
#pragma once

#include "base/cpu.h"
#include "base/function_ref.h"
#include "base/sanitizer.h"
#include "conduit/conduit.h"
#include "conduit/core_monitor.h"

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace diomp::conduit {

struct engine_options {
    int spin_count = 1000; ///< most polls before yielding
    double timeout_s = 0;  ///< 0: none
    double warn_after_s = 60;
    bool progress_thread = true;
    bool is_crowded = false; ///< more ranks than cores: waits begin by yielding
};

using handler = std::function<void(const message &)>;

/// Any thread, except add_handler (start-up only). Handlers must not block and must not take locks
/// that are held across a wait.
class engine {
public:
    engine(conduit &conduit, const engine_options &options);
    ~engine();
    engine(const engine &) = delete;
    engine &operator=(const engine &) = delete;

    /// Handlers of send_bulk are bulk_sinks: they must not send. Those with a placer are asked
    /// where the data goes, by conduits that can choose.
    [[nodiscard]] handler_id add_handler(handler function, bulk_placer placer = {});
    /// Starts the progress thread. All handlers must be there.
    void start();
    /// Stops it. Messages are then served only by waiting threads.
    void stop();

    /// Sends a message. Never blocks: if the peer's queue is full the message waits here, in order,
    /// until there is room.
    void send(world_rank peer, handler_id handler, std::span<const std::byte> payload);
    template <typename Struct>
    void send(world_rank peer, handler_id handler, const Struct &payload) {
        static_assert(std::is_trivially_copyable_v<Struct>);
        send(peer, handler,
             std::span<const std::byte>(std::as_bytes(std::span<const Struct>(&payload, 1))));
    }

    /// As conduit::send_bulk.
    result<bool> send_bulk(world_rank peer, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) {
        order_going_out();
        return conduit_.send_bulk(peer, handler, payload, data, source_free);
    }

    /// As conduit::put_with_message.
    result<bool> put_with_message(world_rank peer, std::uint64_t remote_address,
                                  std::span<const std::byte> source, handler_id handler,
                                  std::span<const std::byte> payload, completion &source_free) {
        order_going_out();
        return conduit_.put_with_message(peer, remote_address, source, handler, payload,
                                         source_free);
    }

    /// Serves waiting messages; true if there were any.
    bool poll();

    /// Waits until ready() is true. For conditions that other ranks or threads bring about by
    /// writing memory. `describe` names what is missing; it is called only when the wait gets long.
    /// ready() is called any number of times until it has returned true, and never after that: it
    /// may take what it finds, or send. Errors: OMPX_ERR_TIMEOUT, OMPX_ERR_PEER; then it has not
    /// returned true.
    template <typename Ready, typename Describe>
    status wait(Ready &&ready, Describe &&describe) {
        int const spins = cores_.polls();
        for (int i = 0; i < spins; ++i) {
            if (ready()) {
                if (i > 0) { // else it says nothing about where the other rank runs
                    cores_.note_success();
                }
                return {};
            }
            cpu_relax();
        }
        if (spins == 0 && !cores_.is_to_sleep()) {
            // The awaited rank most likely needs this core, and has written when the yield returns.
            for (int i = 0; i < quick_yields; ++i) {
                if (ready()) {
                    return {};
                }
                if (cores_.yield(i == 0)) {
                    break;
                }
            }
        }
        return wait_slowly(ready, describe, 0, awaited::store);
    }

    /// The same for conditions that a handler of this rank brings about: polls from the start.
    template <typename Ready, typename Describe>
    status wait_for_message(Ready &&ready, Describe &&describe) {
        return wait_slowly(ready, describe, cores_.polls(), awaited::message);
    }

    /// The same for what takes longer than a yield in any case: other nodes. Offers the core to
    /// others early and often, after each poll once somebody has been seen to want it.
    template <typename Ready, typename Describe>
    status wait_for_network(Ready &&ready, Describe &&describe) {
        return wait_slowly(ready, describe, 0, awaited::message);
    }

    /// After a store to memory that a rank of this node may wait for by wait(): whether threads of
    /// the node sleep, so that wake_for_store() is needed. Costs a load.
    [[nodiscard]] bool have_to_wake() const {
        return store_sleepers_.load(std::memory_order_relaxed) > 0;
    }
    /// Ends the sleep of the rank's threads that wait for a store.
    void wake_for_store(world_rank peer) {
        if (have_to_wake()) [[unlikely]] {
            conduit_.wake_for_store(peer);
        }
    }

    /// Ends the sleep of this rank's threads: the caller has completed something that one of them
    /// may wait for by wait().
    void wake_waiters() { conduit_.wake_napping(); }

    /// Calls `then` once, in a thread that polls, after `count` is done. Any thread; `then` must
    /// not block, and may send and watch.
    void watch(std::shared_ptr<completion> count, std::function<void()> then);
    /// The same after is_over() has been true, which is asked by one thread at a time and may send.
    void watch_until(std::function<bool()> is_over, std::function<void()> then);

    /// Makes every later wait fail with this reason (a peer is gone).
    void fail_waits(std::string reason);
    /// The reason given there, "" if none was.
    [[nodiscard]] std::string failure_reason() const;

    [[nodiscard]] conduit &transport() { return conduit_; }
    [[nodiscard]] const engine_options &options() const { return options_; }
    /// Polls before a wait gives its core away, as things are.
    [[nodiscard]] int spins() const { return cores_.polls(); }

private:
    static constexpr int quick_yields = 3;

    struct pending_message {
        handler_id handler;
        std::vector<std::byte> payload;
    };

    /// Polls `spins` times with messages before it starts to yield.
    status wait_slowly(function_ref<bool()> ready, function_ref<std::string()> describe, int spins,
                       awaited what);
    [[nodiscard]] bool polls_alone() const {
        return num_polling_.load(std::memory_order_relaxed) <= 1;
    }
    /// What a long wait is for, and what the conduit waits for meanwhile.
    [[nodiscard]] std::string explain(function_ref<std::string()> describe) const;
    bool flush_outbox();
    bool run_finished();
    void serve(); ///< body of the progress thread

    conduit &conduit_;
    engine_options options_;
    core_monitor cores_;
    const std::atomic<std::uint32_t> &store_sleepers_;
    std::atomic<int> num_polling_{0}; ///< threads that wait awake
    std::vector<handler> handlers_;
    std::vector<bulk_placer> placers_; ///< of the same handlers; most are empty
    std::mutex outbox_mutex_;          ///< leaf lock
    /// Messages whose peers had no room, in order; only peers with some are here.
    std::unordered_map<int, std::deque<pending_message>> outbox_; ///< by world rank
    std::atomic<int> num_pending_{0};                             ///< messages in it
    struct watched {
        std::function<bool()> is_over;
        std::function<void()> then;
    };
    std::mutex watch_mutex_; ///< leaf lock over watched_; who looks takes all of them out meanwhile
    std::vector<watched> watched_;
    std::atomic<int> num_watched_{0};
    std::atomic<bool> stopping_{false};
    std::atomic<bool> failed_{false};
    mutable std::mutex failure_mutex_;
    std::string failure_;
    std::thread thread_;
};

} // namespace diomp::conduit
