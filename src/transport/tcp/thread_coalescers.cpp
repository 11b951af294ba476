// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small puts of concurrent threads. In the shared send queue each put would fetch the tail of the
// queue from another core, and a polling thread would send partly filled packets of other threads.
// So small puts wait in the thread's coalescer until a flush, until there are many, or until time
// has passed. Declared in connection.h.
#include "transport/tcp/connection.h"

#include <mutex>

namespace diomp::transport::tcp {
namespace {

/// A compromise between latency and the number of lock operations.
constexpr std::size_t max_thread_coalescer_bytes = 4096;

} // namespace

bool connection::has_several_putters() {
    if (coalescers_.load(std::memory_order_relaxed) != nullptr) {
        return true;
    }
    ::pthread_t const self = ::pthread_self();
    ::pthread_t first = first_putter_.load(std::memory_order_relaxed);
    if (first == self || (first == ::pthread_t{} && first_putter_.compare_exchange_strong(
                                                        first, self, std::memory_order_relaxed))) {
        return false;
    }
    create_coalescers();
    return true;
}

void connection::create_coalescers() {
    std::lock_guard const guard(queue_mutex_);
    if (coalescers_owner_ == nullptr) {
        coalescers_owner_ = std::make_unique<thread_coalescers>();
        coalescers_.store(coalescers_owner_.get(), std::memory_order_release);
    }
}

void connection::coalesce_put(const frame &head, const void *data,
                              std::atomic<std::uint64_t> &num_puts) {
    thread_coalescer &own = coalescers_.load(std::memory_order_acquire)->own();
    bool should_transmit = false;
    {
        std::unique_lock guard(own.mutex);
        if (connection *const next = superseded_by_.load(std::memory_order_acquire);
            next != nullptr) {
            guard.unlock();
            completion unused; // the data is copied
            next->send_put(head, data, unused, num_puts, false);
            return;
        }
        bool const is_first = own.puts.empty();
        own.puts.append_put(head, data, max_thread_coalescer_bytes);
        own.counter = &num_puts;
        ++own.num_puts;
        if (is_first) {
            std::lock_guard const queue_guard(queue_mutex_);
            num_filled_coalescers_.fetch_add(1, std::memory_order_release);
            update_queued_counts();
        }
        if (own.puts.size() >= max_thread_coalescer_bytes) {
            drain_coalescer(own);
            should_transmit =
                visible_queued_bytes_.load(std::memory_order_relaxed) >= transmit_threshold_bytes;
        }
    }
    if (should_transmit && !is_full_.load(std::memory_order_relaxed)) {
        transmit();
    }
}

void connection::drain_coalescer(thread_coalescer &full) {
    connection *next = nullptr;
    {
        std::lock_guard const guard(queue_mutex_);
        next = superseded_by_.load(std::memory_order_relaxed);
        if (next == nullptr) {
            enqueue_puts(full.puts, full.num_puts, *full.counter);
        }
    }
    if (next != nullptr) { // never superseded itself
        std::lock_guard const guard(next->queue_mutex_);
        next->enqueue_puts(full.puts, full.num_puts, *full.counter);
    }
    full.puts.clear();
    full.num_puts = 0;
    // Last: a thread that sees no filled coalescer must see all its puts counted.
    num_filled_coalescers_.fetch_sub(1, std::memory_order_release);
}

/// Under queue_mutex_.
void connection::enqueue_puts(const coalescer &puts, std::uint64_t num,
                              std::atomic<std::uint64_t> &counter) {
    counter.fetch_add(num, std::memory_order_release);
    if (current_state() != state::broken) {
        coalesced_.append(puts);
    }
    update_queued_counts();
}

void connection::drain_coalescers() {
    if (!has_coalesced_puts()) {
        return;
    }
    for (thread_coalescer &each : coalescers_.load(std::memory_order_acquire)->all) {
        std::lock_guard const guard(each.mutex);
        if (!each.puts.empty()) {
            drain_coalescer(each);
        }
    }
}

} // namespace diomp::transport::tcp
