// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small puts of concurrent threads to one peer. In the shared send queue each put would fetch the
// tail of the queue from another core, and a polling thread would send partly filled packets of
// other threads. So small puts wait in the thread's coalescer until a flush, until there are many,
// or until time has passed.
#pragma once

#include "base/adaptive_mutex.h"
#include "base/cpu.h"
#include "base/thread_slot.h"
#include "transport/tcp/coalescer.h"

#include <array>
#include <atomic>
#include <memory>
#include <pthread.h>

namespace diomp::transport::tcp {

class connection;

/// Any thread.
class thread_coalescers {
public:
    /// Limit of a put.
    static constexpr std::size_t max_put_bytes = 1024;

    /// `num_puts` counts puts when they enter a send queue; `num_busy` counts coalescers that wait
    /// to be drained, and may be null.
    thread_coalescers(std::atomic<std::uint64_t> &num_puts, std::atomic<int> *num_busy)
        : num_puts_(num_puts), num_busy_(num_busy) {}

    /// True if several threads put.
    [[nodiscard]] bool are_needed();
    /// Adds a put of the calling thread; `conn` is the connection to the peer.
    void add(const frame &head, const void *data, connection &conn);
    /// Moves all puts to the send queue of `conn`. Call before a flush.
    void drain(connection &conn);

private:
    /// Puts of one thread, or of a few.
    struct alignas(cache_line_bytes) thread_coalescer {
        adaptive_mutex mutex; ///< before the locks of a connection
        coalescer puts;
        std::uint64_t num_puts = 0;
    };
    using table = std::array<thread_coalescer, 8>;

    void create_table();
    /// Under the mutex of `full`. True: call conn.transmit().
    bool drain(thread_coalescer &full, connection &conn);

    std::atomic<table *> table_{nullptr}; ///< null until several threads put
    std::atomic<::pthread_t> first_putter_{};
    std::atomic<std::uint64_t> &num_puts_;
    std::atomic<int> *num_busy_;
    std::unique_ptr<table> owner_; ///< of table_
    std::atomic<int> num_filled_{0};
};

} // namespace diomp::transport::tcp
