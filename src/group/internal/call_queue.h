// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Serializes the collective calls on one group, in the order in which this rank made them: blocking
// calls run on the caller's thread, queued calls on a thread of the group.
#pragma once

#include "base/biased_mutex.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace diomp::group {

/// Thread-safe. The destructor waits for the queued calls.
class call_queue {
public:
    /// Held by a thread for the duration of its call on the group.
    using call_lock = std::unique_lock<biased_mutex>;

    call_queue() = default;
    ~call_queue();
    call_queue(const call_queue &) = delete;
    call_queue &operator=(const call_queue &) = delete;

    /// Blocks until all calls queued before have run and no other thread holds the call lock.
    [[nodiscard]] call_lock lock_calls() {
        if (num_queued_.load(std::memory_order_acquire) != 0) [[unlikely]] {
            drain();
        }
        return call_lock(call_mutex_);
    }
    /// Queues `call` for the group's thread, which the first call starts. Does not block.
    void submit(std::function<void()> call);

private:
    struct queued_call {
        std::function<void()> run;
        std::chrono::steady_clock::time_point since;
    };
    void drain();
    void serve(); ///< body of the thread "diomp-coll"

    biased_mutex call_mutex_; ///< taken before mutex_, never after it
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<queued_call> calls_;
    std::atomic<int> num_queued_{0}; ///< including the running call
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace diomp::group
