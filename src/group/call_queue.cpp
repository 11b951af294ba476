// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/call_queue.h"

#include "base/assert.h"
#include "base/service_thread.h"
#include "messaging/wait_limits.h"

namespace diomp::group {

call_queue::~call_queue() {
    {
        std::lock_guard const guard(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void call_queue::submit(std::function<void()> call) {
    {
        std::lock_guard const guard(mutex_);
        DIOMP_ASSERT(!stopping_, "no call is submitted to a queue that ends");
        calls_.push_back({std::move(call), std::chrono::steady_clock::now()});
        num_queued_.fetch_add(1, std::memory_order_release);
        if (!thread_.joinable()) {
            thread_ = start_service_thread("diomp-coll", [this] { serve(); });
        }
    }
    changed_.notify_all();
}

void call_queue::drain() {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [this] { return num_queued_.load(std::memory_order_relaxed) == 0; });
}

void call_queue::serve() {
    std::unique_lock guard(mutex_);
    for (;;) {
        changed_.wait(guard, [this] { return stopping_ || !calls_.empty(); });
        if (calls_.empty()) {
            return;
        }
        queued_call call = std::move(calls_.front());
        calls_.pop_front();
        guard.unlock();
        {
            call_lock const own(call_mutex_);
            messaging::inherited_limit const limit(call.since);
            call.run();
        }
        call.run = nullptr;
        guard.lock();
        [[maybe_unused]] auto const before = num_queued_.fetch_sub(1, std::memory_order_release);
        DIOMP_ASSERT(before > 0, "every queued call is counted");
        changed_.notify_all();
    }
}

} // namespace diomp::group
