// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that sleep on a network's descriptor while they wait for an operation.
#pragma once

#include "transport/common/network_driver.h"
#include "transport/common/poller_count.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

namespace diomp::transport {

/// Thread-safe after start().
class idle_waiters {
public:
    idle_waiters(network_driver &driver, poller_count &pollers)
        : driver_(driver), pollers_(pollers) {}

    /// `event_fd` is the network's descriptor; -1: there is none to sleep on.
    void start(int event_fd) { event_fd_ = event_fd; }
    /// See network_progress::idle_wait.
    bool wait(std::chrono::microseconds limit, function_ref<bool()> is_over);
    /// Ends wait(). Costs one load if no thread waits.
    void wake() {
        if (num_waiting_.load(std::memory_order_seq_cst) > 0) [[unlikely]] {
            wake_all();
        }
    }
    /// network_driver::arm, for one thread at a time.
    [[nodiscard]] bool arm() {
        std::lock_guard const guard(arm_mutex_);
        return driver_.arm();
    }
    /// Call after progress: the descriptor is polled again.
    void note_progress() {
        if (had_spurious_wakeup_.load(std::memory_order_relaxed)) [[unlikely]] {
            had_spurious_wakeup_.store(false, std::memory_order_relaxed);
        }
    }

private:
    /// A thread that is in wait(), which wake() finds.
    class waiting_thread {
    public:
        waiting_thread(idle_waiters &in, int event);
        ~waiting_thread();
        waiting_thread(const waiting_thread &) = delete;
        waiting_thread &operator=(const waiting_thread &) = delete;

    private:
        idle_waiters &in_;
        int event_;
    };

    void wake_all();

    network_driver &driver_;
    poller_count &pollers_;
    std::mutex events_mutex_;
    /// One for each thread in wait(): a thread that has been woken must not take the event of
    /// another one, which would sleep on.
    std::vector<int> events_;
    std::mutex arm_mutex_;
    int event_fd_ = -1;
    std::atomic<int> num_waiting_{0};
    /// The descriptor ended a wait, and there has been no progress since.
    std::atomic<bool> had_spurious_wakeup_{false};
};

} // namespace diomp::transport
