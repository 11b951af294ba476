// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/thread_coalescers.h"

#include "transport/tcp/connection.h"

#include <mutex>

namespace diomp::transport::tcp {
namespace {

/// A compromise between latency and the number of lock operations.
constexpr std::size_t max_thread_coalescer_bytes = 4096;

} // namespace

bool thread_coalescers::are_needed() {
    if (table_.load(std::memory_order_relaxed) != nullptr) {
        return true;
    }
    ::pthread_t const self = ::pthread_self();
    ::pthread_t first = first_putter_.load(std::memory_order_relaxed);
    if (first == self || (first == ::pthread_t{} && first_putter_.compare_exchange_strong(
                                                        first, self, std::memory_order_relaxed))) {
        return false;
    }
    create_table();
    return true;
}

void thread_coalescers::create_table() {
    auto made = std::make_unique<table>();
    if (table *none = nullptr; table_.compare_exchange_strong(none, made.get())) {
        owner_ = std::move(made);
    }
}

void thread_coalescers::add(const frame &head, const void *data, connection &conn) {
    table &all = *table_.load(std::memory_order_acquire);
    thread_coalescer &own = all[thread_slot<std::tuple_size_v<table>>()];
    bool should_transmit = false;
    {
        std::lock_guard const guard(own.mutex);
        if (own.puts.empty()) {
            num_filled_.fetch_add(1, std::memory_order_release);
            if (num_busy_ != nullptr) {
                num_busy_->fetch_add(1, std::memory_order_release);
            }
        }
        own.puts.append_put(head, data, max_thread_coalescer_bytes);
        ++own.num_puts;
        if (own.puts.size() >= max_thread_coalescer_bytes) {
            should_transmit = drain(own, conn);
        }
    }
    if (should_transmit) {
        conn.transmit();
    }
}

bool thread_coalescers::drain(thread_coalescer &full, connection &conn) {
    bool const should_transmit = conn.send_puts(full.puts, full.num_puts, num_puts_);
    full.puts.clear();
    full.num_puts = 0;
    // Last: a thread that sees no filled coalescer must see all its puts counted.
    num_filled_.fetch_sub(1, std::memory_order_release);
    if (num_busy_ != nullptr) {
        num_busy_->fetch_sub(1, std::memory_order_release);
    }
    return should_transmit;
}

void thread_coalescers::drain(connection &conn) {
    if (num_filled_.load(std::memory_order_acquire) == 0) {
        return;
    }
    for (thread_coalescer &each : *table_.load(std::memory_order_acquire)) {
        std::lock_guard const guard(each.mutex);
        if (!each.puts.empty()) {
            static_cast<void>(drain(each, conn));
        }
    }
}

} // namespace diomp::transport::tcp
