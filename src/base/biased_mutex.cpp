// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/biased_mutex.h"

#include "base/panic.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace diomp {
namespace {

/// An owner that no thread is.
const char everybody = 0;

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

bool has_barrier() {
    static bool const registered = [] {
        long const known = membarrier(MEMBARRIER_CMD_QUERY);
        return known > 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
               membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    }();
    return registered;
}

} // namespace

thread_local char biased_mutex::own_address = 0;

void biased_mutex::prepare() { has_barrier(); }

void biased_mutex::lock_shared_by_all(const void *self) {
    mutex_.lock();
    const void *const owner = owner_.load(std::memory_order_relaxed);
    if (owner == nullptr) {
        owner_.store(has_barrier() ? self : &everybody, std::memory_order_relaxed);
    } else if (owner != &everybody) {
        end_privilege();
    }
}

void biased_mutex::end_privilege() {
    owner_.store(&everybody, std::memory_order_relaxed);
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        panic("membarrier(2) fails, although the kernel has granted it");
    }
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
