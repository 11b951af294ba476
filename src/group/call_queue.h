// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collective calls on one group come one after the other, in the order in which this rank made
// them: blocking ones on the caller's thread, queued ones on a thread of the group.
#pragma once

#include "base/biased_mutex.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace diomp::group {

/// Any thread. The destructor waits for what is queued.
class call_queue {
public:
    /// The right to make the next call; held while the call lasts.
    using turn = std::unique_lock<biased_mutex>;

    call_queue() = default;
    ~call_queue();
    call_queue(const call_queue &) = delete;
    call_queue &operator=(const call_queue &) = delete;

    /// Blocks until everything queued before has run and no other thread has the turn.
    [[nodiscard]] turn enter() {
        if (num_queued_.load(std::memory_order_acquire) != 0) [[unlikely]] {
            drain();
        }
        return turn(turn_);
    }
    /// Runs `call` in its turn on the group's thread, which the first call starts.
    void submit(std::function<void()> call);

private:
    void drain();
    void serve(); ///< body of the thread "diomp-coll"

    biased_mutex turn_; ///< taken before mutex_, never after it
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> calls_;
    std::atomic<int> num_queued_{0}; ///< with the one that runs
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace diomp::group
