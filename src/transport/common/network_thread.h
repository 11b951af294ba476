// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The thread that makes progress of the network while no other thread polls. While one polls, this
// thread sleeps a millisecond at a time and costs nothing on the polling thread's path; when no
// thread has polled for that time, it makes progress and sleeps on the network's descriptor. While
// the threads that poll sleep on the descriptor themselves, or wait for their core, it sleeps until
// one of them ends its wait, or until there is work that the descriptor does not announce.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/common/poller_count.h"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

namespace diomp::transport {

struct network_thread_work {
    /// See poller_count::state().
    std::function<polling()> state;
    /// Makes progress. True if there was work.
    std::function<bool()> serve;
    /// Prepares for sleeping on the descriptor. False: there is work.
    std::function<bool()> arm;
    /// Called about every millisecond while awake. Returns the milliseconds of sleep until the next
    /// call; -1: no call before an event.
    std::function<int()> check_peers;
};

class network_thread {
public:
    static result<std::unique_ptr<network_thread>> start(int event_fd, network_thread_work work);
    /// Stops the thread.
    ~network_thread();
    network_thread(const network_thread &) = delete;
    network_thread &operator=(const network_thread &) = delete;

    /// If the thread sleeps, wakes it. Costs one load otherwise.
    void wake() {
        if (asleep_.load(std::memory_order_seq_cst)) [[unlikely]] {
            signal_event();
        }
    }

private:
    network_thread(int event_fd, network_thread_work work)
        : event_fd_(event_fd), work_(std::move(work)) {}
    void run();
    /// True: an event ended the wait.
    bool wait(bool for_events, int limit_ms);
    void signal_event();

    int event_fd_;
    network_thread_work work_;
    unique_fd wake_event_;
    std::atomic<bool> asleep_{false};
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

} // namespace diomp::transport
