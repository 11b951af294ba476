// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages that have arrived and wait for poll(), in one buffer.
#pragma once

#include "conduit/conduit.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace diomp::conduit {

/// Under its owner's lock, but for what says otherwise.
class message_queue {
public:
    void add(world_rank source, handler_id handler, const std::byte *payload, std::size_t nbytes);
    /// Gives what waits for the content of `other`, which is used again.
    void swap(std::vector<std::byte> &other) {
        messages_.swap(other);
        has_messages_.store(!messages_.empty(), std::memory_order_release);
    }

    /// Any thread.
    [[nodiscard]] bool has_messages() const {
        return has_messages_.load(std::memory_order_acquire);
    }
    /// Walks through what swap() gave. Any thread.
    static int hand_over(const std::vector<std::byte> &messages, message_sink sink);

private:
    std::vector<std::byte> messages_;
    std::atomic<bool> has_messages_{false};
};

/// What has come for the runtime. Any thread; a leaf lock of its own.
class arrivals {
public:
    void add_message(world_rank source, handler_id handler, const std::byte *payload,
                     std::size_t nbytes) {
        std::lock_guard const guard(mutex_);
        queue_.add(source, handler, payload, nbytes);
    }
    /// Calls add(message_queue&) under the lock.
    template <typename Add>
    void add_messages(Add &&add) {
        std::lock_guard const guard(mutex_);
        add(queue_);
    }
    [[nodiscard]] bool has_messages() const { return queue_.has_messages(); }
    /// As message_queue::swap.
    void swap_messages(std::vector<std::byte> &other) {
        std::lock_guard const guard(mutex_);
        queue_.swap(other);
    }

    void receive_bulk_with(const bulk_sink &sink, const bulk_placer &placer);
    /// Gives a message of send_bulk to the sink.
    void take_bulk(const message &arrived);
    /// What the placer says.
    [[nodiscard]] std::byte *place_bulk(const message &announced, std::size_t nbytes);
    /// A bulk message has been handled since the last call.
    [[nodiscard]] bool take_bulk_news() {
        return bulk_news_.exchange(false, std::memory_order_relaxed);
    }

private:
    std::mutex mutex_;
    message_queue queue_;
    bulk_sink bulk_sink_;
    bulk_placer bulk_placer_;
    std::atomic<bool> bulk_news_{false};
};

} // namespace diomp::conduit
