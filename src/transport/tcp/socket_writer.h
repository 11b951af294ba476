// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes the data of a connection to its socket.
#pragma once

#include "transport/tcp/byte_stream.h"
#include "transport/tcp/send_queue.h"

#include <array>
#include <atomic>
#include <pthread.h>
#include <vector>

namespace diomp::transport::tcp {

/// Data that has been taken from the send queue and is being written. Guarded by its owner's lock,
/// except functions that say otherwise.
class socket_writer {
public:
    /// The calling thread writes.
    void begin() {
        is_full_.store(false, std::memory_order_relaxed);
        last_writer_.store(::pthread_self(), std::memory_order_relaxed);
    }
    /// Takes all queued data, unless enough is left for a system call.
    void take(send_queue &from) {
        if (items_.size() < max_iovecs) {
            from.move_to(items_, spare_);
        }
    }
    /// Writes the first items, or a record of encrypted data; returns the result of the system
    /// call.
    ssize_t write(byte_stream &to);
    [[nodiscard]] bool has_unsent(const byte_stream &to) const {
        return !items_.empty() || to.has_unsent();
    }
    void discard(byte_stream &to);
    /// Makes changes visible to has_data() and visible_bytes().
    void publish(const byte_stream &to) {
        visible_bytes_.store(items_.copied_bytes(), std::memory_order_relaxed);
        has_data_.store(has_unsent(to), std::memory_order_release);
    }

    // Any thread.
    /// True if the last write has filled the socket.
    [[nodiscard]] bool is_full() const { return is_full_.load(std::memory_order_relaxed); }
    /// True if the last write was by another thread. A reader that finds the socket empty then
    /// makes writers sleep on the lock of the socket.
    [[nodiscard]] bool is_used_by_others() const {
        ::pthread_t const writer = last_writer_.load(std::memory_order_relaxed);
        return writer != ::pthread_t{} && writer != ::pthread_self();
    }
    [[nodiscard]] bool has_data() const { return has_data_.load(std::memory_order_acquire); }
    /// Bytes of copied data.
    [[nodiscard]] std::size_t visible_bytes() const {
        return visible_bytes_.load(std::memory_order_relaxed);
    }

private:
    static constexpr std::size_t max_iovecs = 32;

    ssize_t write_plain(int socket, bool &is_all);
    ssize_t write_sealed(int socket, sealed_stream &sealed, bool &is_all);

    std::atomic<bool> has_data_{false};
    std::atomic<bool> is_full_{false};
    std::atomic<std::size_t> visible_bytes_{0};
    std::atomic<::pthread_t> last_writer_{};
    send_items items_;             ///< before the send queue
    std::vector<std::byte> spare_; ///< empty; keeps its memory
};

} // namespace diomp::transport::tcp
