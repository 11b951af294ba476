// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small puts of threads that put side by side. In a connection's row each would fetch its end from
// the core of another thread, and who polls would send away what another thread has just begun. So
// they wait in the thread's own nest until a flush wants them, they are many, or time has passed.
// Declared in link.h.
#include "conduit/tcp/link.h"

#include <mutex>

namespace diomp::conduit::tcp {
namespace {

/// Of a nest: few enough to leave soon, many enough to be worth it.
constexpr std::size_t most_in_nest = 4096;

} // namespace

bool link::is_shared() {
    if (nests_.load(std::memory_order_relaxed) != nullptr) {
        return true;
    }
    ::pthread_t const self = ::pthread_self();
    ::pthread_t first = first_putter_.load(std::memory_order_relaxed);
    if (first == self || (first == ::pthread_t{} && first_putter_.compare_exchange_strong(
                                                        first, self, std::memory_order_relaxed))) {
        return false;
    }
    share();
    return true;
}

void link::share() {
    std::lock_guard const guard(gather_mutex_);
    if (nests_owner_ == nullptr) {
        nests_owner_ = std::make_unique<put_nests>();
        nests_.store(nests_owner_.get(), std::memory_order_release);
    }
}

void link::nest_put(const frame &head, const void *data, std::atomic<std::uint64_t> &num_puts) {
    put_nest &own = nests_.load(std::memory_order_acquire)->own();
    bool is_enough = false;
    {
        std::unique_lock guard(own.mutex);
        if (link *const next = successor_.load(std::memory_order_acquire); next != nullptr) {
            guard.unlock();
            completion unused; // the data is copied
            next->send_put(head, data, unused, num_puts, false);
            return;
        }
        bool const is_first = own.puts.empty();
        own.puts.append_put(head, data, most_in_nest);
        own.counter = &num_puts;
        ++own.num_puts;
        if (is_first) {
            std::lock_guard const gathering(gather_mutex_);
            num_nested_.fetch_add(1, std::memory_order_release);
            count_gathered();
        }
        if (own.puts.size() >= most_in_nest) {
            empty_nest(own);
            is_enough = num_gathered_copies_.load(std::memory_order_relaxed) >= most_gathered;
        }
    }
    if (is_enough && !is_full_.load(std::memory_order_relaxed)) {
        ship();
    }
}

void link::empty_nest(put_nest &full) {
    link *next = nullptr;
    {
        std::lock_guard const guard(gather_mutex_);
        next = successor_.load(std::memory_order_relaxed);
        if (next == nullptr) {
            place_puts(full.puts, full.num_puts, *full.counter);
        }
    }
    if (next != nullptr) { // which gives way to none
        std::lock_guard const guard(next->gather_mutex_);
        next->place_puts(full.puts, full.num_puts, *full.counter);
    }
    full.puts.clear();
    full.num_puts = 0;
    // Last: who sees no nest in use must see their puts counted.
    num_nested_.fetch_sub(1, std::memory_order_release);
}

/// Under gather_mutex_.
void link::place_puts(const gathering &puts, std::uint64_t num,
                      std::atomic<std::uint64_t> &counter) {
    counter.fetch_add(num, std::memory_order_release);
    if (condition() != state::broken) {
        gathered_.append(puts);
    }
    count_gathered();
}

void link::collect_puts() {
    if (!has_nested()) {
        return;
    }
    for (put_nest &each : nests_.load(std::memory_order_acquire)->all) {
        std::lock_guard const guard(each.mutex);
        if (!each.puts.empty()) {
            empty_nest(each);
        }
    }
}

} // namespace diomp::conduit::tcp
