// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the batches of a session: the batches of one queue in order, those of different queues
// concurrently. The session's first thread polls for messages while it is idle, so that a region on
// an idle device needs no thread switch; helper threads are started when it is busy.
#pragma once

#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "offload/service/batch_runner.h"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace diomp::offload::service {

/// Schedules batches over the threads of the session.
class executor {
public:
    explicit executor(batch_runner &runner) : runner_(runner) {}
    ~executor();
    executor(const executor &) = delete;
    executor &operator=(const executor &) = delete;

    /// Active-message handler for batches of the client: adds one to its queue.
    void take(const transport::message &incoming);
    /// Body of the first thread; returns after stop(). `ranks` must outlive the call.
    void run(remote::world &ranks);
    /// Stops the threads without waiting for running operations. Any thread.
    void stop();

private:
    struct batch {
        std::uint64_t number = 0;
        std::string operations;
    };
    struct entry {
        std::uint64_t number = 0;
        std::deque<batch> batches;
        std::uint64_t done = 0;    ///< number of the last complete batch
        bool is_scheduled = false; ///< owned by a thread, ready, or blocked
        std::size_t resume_at = 0; ///< offset in the first batch after a wait
        bool waits_for_copies = false;
        queue_results results;
    };
    /// A queue that waits for a batch of another one.
    struct blocked_queue {
        entry *waiter;
        std::uint64_t queue;
        std::uint64_t batch;
    };

    // Called with mutex_ held.
    entry *pop_ready();
    [[nodiscard]] bool is_complete(std::uint64_t queue, std::uint64_t number) const;
    void wake_helpers(); ///< for all that is in waiting_.ready
    void start_helper();
    void run_queue(entry &queue, std::size_t thread);
    enum class after_copies : std::uint8_t {
        batch,    ///< there is one
        no_batch, ///< nor a copy, unless the session ends
        helper,   ///< a helper waits for the copies
    };
    /// Waits until the copies that batches have started are complete, or a batch arrives. The first
    /// thread, which runs regions best, leaves those that take long to a helper. `lock`: of mutex_,
    /// held before and after.
    after_copies wait_for_copies(entry &queue, bool is_first, std::unique_lock<std::mutex> &lock);
    /// False: the queue is blocked.
    bool run_batch(entry &queue, batch &what, std::size_t thread);
    bool wait_for(entry &queue, std::uint64_t other, std::uint64_t number);
    void complete_batch(entry &queue, std::uint64_t number);
    void run_helper(std::size_t thread); ///< body of the other threads

    batch_runner &runner_;
    std::atomic<remote::world *> ranks_{nullptr};
    std::atomic<bool> stopping_{false};
    std::mutex mutex_; ///< protects the rest
    std::condition_variable work_available_;
    std::unordered_map<std::uint64_t, std::unique_ptr<entry>> queues_;
    struct {
        std::deque<entry *> ready;
        std::deque<entry *> copying; ///< a helper waits for their copies
    } waiting_;                      ///< for a thread
    std::vector<blocked_queue> blocked_;
    bool first_is_busy_ = false;
    std::size_t num_idle_ = 0; ///< helpers that will look at waiting_.ready, those that start too
    struct helper {
        std::thread thread;
        bool is_over = false;
    };
    std::vector<helper> helpers_; ///< [thread number - 1]
};

} // namespace diomp::offload::service
