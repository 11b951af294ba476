// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/biased_mutex.h"

#include "base/process_barrier.h"

#include <sched.h>
#include <time.h>

namespace diomp {
namespace {

/// Owner of a mutex that has lost its bias; never a thread.
const char shared_owner = 0;

} // namespace

thread_local char biased_mutex::own_address = 0;

void biased_mutex::prepare() { prepare_process_barrier(); }

void biased_mutex::lock_slow(const void *self) {
    mutex_.lock();
    const void *const owner = owner_.load(std::memory_order_relaxed);
    if (owner == nullptr) {
        owner_.store(prepare_process_barrier() ? self : &shared_owner, std::memory_order_relaxed);
    } else if (owner != &shared_owner) {
        revoke_bias();
    }
}

void biased_mutex::revoke_bias() {
    owner_.store(&shared_owner, std::memory_order_relaxed);
    static_cast<void>(process_barrier()); // the barrier exists, or no thread would be the owner
    for (int num_checks = 0; is_inside_.load(std::memory_order_acquire); ++num_checks) {
        if (num_checks < 100) {
            ::sched_yield();
        } else {
            timespec const sleep_time{0, 50'000};
            ::nanosleep(&sleep_time, nullptr);
        }
    }
}

} // namespace diomp
