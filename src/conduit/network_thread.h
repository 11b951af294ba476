// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The thread that serves the network while nobody polls. While somebody does it naps and costs
// nothing on that thread's path; when nobody has for a nap's time it sleeps on its descriptor.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

namespace diomp::conduit {

struct network_thread_work {
    /// Somebody polls, or has polled since the last call.
    std::function<bool()> is_polled;
    /// Does what there is to do. True if there was something.
    std::function<bool()> serve;
    /// Prepares for sleeping on the descriptor. False: there is something to do.
    std::function<bool()> arm;
    /// Called about every millisecond while awake. Returns after how many milliseconds of sleep it
    /// is to be called again; -1: not without an event.
    std::function<int()> watch;
};

class network_thread {
public:
    static result<std::unique_ptr<network_thread>> start(int event_fd, network_thread_work work);
    /// Stops it.
    ~network_thread();
    network_thread(const network_thread &) = delete;
    network_thread &operator=(const network_thread &) = delete;

    /// If it sleeps, makes it look around. Costs one load otherwise.
    void nudge() {
        if (asleep_.load(std::memory_order_seq_cst)) [[unlikely]] {
            ring();
        }
    }

private:
    network_thread(int event_fd, network_thread_work work)
        : event_fd_(event_fd), work_(std::move(work)) {}
    void run();
    /// True: an event ended it.
    bool wait(bool for_events, int limit_ms);
    void ring();

    int event_fd_;
    network_thread_work work_;
    unique_fd bell_;
    std::atomic<bool> asleep_{false};
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

} // namespace diomp::conduit
