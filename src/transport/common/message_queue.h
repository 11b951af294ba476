// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages that have arrived and wait for poll(), in one buffer.
#pragma once

#include "transport/types.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace diomp::transport {

/// Guarded by its owner's lock, except functions that say otherwise.
class message_queue {
public:
    void add(world_rank source, handler_id handler, const std::byte *payload, std::size_t nbytes);
    /// Exchanges the waiting messages for the content of `other`, whose memory is reused.
    void swap(std::vector<std::byte> &other) {
        messages_.swap(other);
        has_messages_.store(!messages_.empty(), std::memory_order_release);
    }

    /// Any thread.
    [[nodiscard]] bool has_messages() const {
        return has_messages_.load(std::memory_order_acquire);
    }
    /// Calls the handler for each message in a buffer from swap(); returns their number. Any
    /// thread.
    static int dispatch(const std::vector<std::byte> &messages, message_handler handle);

private:
    std::vector<std::byte> messages_;
    std::atomic<bool> has_messages_{false};
};

/// Messages received for the runtime. Thread-safe; uses a leaf lock of its own.
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
    /// Calls the handler for each waiting message; returns their number. 0 at once if another
    /// thread is doing so.
    int dispatch(message_handler handle);

    void set_am_long_handler(const am_long_handler &handle,
                             const recv_buffer_callback &find_buffer);
    /// Calls the handler of AM longs.
    void handle_long(const message &arrived);
    /// Calls the callback that chooses the buffer of an AM long.
    [[nodiscard]] std::byte *find_recv_buffer(const message &incoming, std::size_t nbytes);
    /// Whether an AM long has been handled since the last call.
    [[nodiscard]] bool take_long_handled() {
        return long_handled_.exchange(false, std::memory_order_relaxed);
    }

private:
    std::mutex mutex_;
    message_queue queue_;
    std::atomic_flag dispatching_;
    std::vector<std::byte> messages_in_dispatch_; ///< under dispatching_
    am_long_handler long_handler_;
    recv_buffer_callback recv_buffer_callback_;
    std::atomic<bool> long_handled_{false};
};

} // namespace diomp::transport
