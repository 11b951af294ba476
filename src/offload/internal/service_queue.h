// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "base/service_thread.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace diomp::offload {

/// Requests that a separate thread serves, since a message handler must not block. The first
/// request starts the thread. Thread-safe.
template <typename Item>
class service_queue {
public:
    /// `serve` runs in the thread until next() returns false. What it uses must outlive the queue.
    service_queue(const char *thread_name, bool is_open, std::function<void()> serve)
        : thread_name_(thread_name), serve_(std::move(serve)), is_open_(is_open) {}
    ~service_queue() { stop(); }
    service_queue(const service_queue &) = delete;
    service_queue &operator=(const service_queue &) = delete;

    void push(Item added) {
        std::lock_guard const guard(mutex_);
        if (stopping_) {
            return;
        }
        items_.push_back(std::move(added));
        if (!thread_.joinable()) {
            thread_ = start_service_thread(thread_name_, serve_);
        }
        changed_.notify_one();
    }
    /// Lets next() return items.
    void open() {
        {
            std::lock_guard const guard(mutex_);
            is_open_ = true;
        }
        changed_.notify_all();
    }
    /// Ends the thread. Items that are left, and later ones, stay without a reply.
    void stop() {
        {
            std::lock_guard const guard(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable()) {
            thread_.join();
        }
    }
    /// Waits for the next item; with `may_be_empty`, returns at once if there is none. False: the
    /// thread shall end.
    bool next(std::optional<Item> &item, bool may_be_empty = false) {
        std::unique_lock guard(mutex_);
        changed_.wait(guard,
                      [&] { return may_be_empty || stopping_ || (is_open_ && !items_.empty()); });
        item.reset();
        if (!stopping_ && !items_.empty()) {
            item = std::move(items_.front());
            items_.pop_front();
        }
        return !stopping_;
    }

private:
    const char *thread_name_;
    std::function<void()> serve_;
    std::mutex mutex_; ///< leaf lock; guards the members below
    std::condition_variable changed_;
    std::deque<Item> items_;
    bool is_open_;
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace diomp::offload
