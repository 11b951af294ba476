// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/biased_mutex.h"

#include "base/process_barrier.h"

#include <sched.h>
#include <time.h>

namespace diomp {
namespace {

/// An owner that no thread is.
const char everybody = 0;

} // namespace

thread_local char biased_mutex::own_address = 0;

void biased_mutex::prepare() { prepare_process_barrier(); }

void biased_mutex::lock_shared_by_all(const void *self) {
    mutex_.lock();
    const void *const owner = owner_.load(std::memory_order_relaxed);
    if (owner == nullptr) {
        owner_.store(prepare_process_barrier() ? self : &everybody, std::memory_order_relaxed);
    } else if (owner != &everybody) {
        end_privilege();
    }
}

void biased_mutex::end_privilege() {
    owner_.store(&everybody, std::memory_order_relaxed);
    static_cast<void>(process_barrier()); // there is one, or no thread would own it
    for (int looks = 0; is_inside_.load(std::memory_order_acquire); ++looks) {
        if (looks < 100) {
            ::sched_yield();
        } else {
            timespec const nap{0, 50'000};
            ::nanosleep(&nap, nullptr);
        }
    }
}

} // namespace diomp
