// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A mutex biased to the first thread that locks it. While no other thread locks it, locking and
// unlocking are plain loads and stores: a locked instruction would wait until all earlier stores of
// its core are visible, which for a store that another core polls takes longer than the rest of a
// small call. The first lock by another thread revokes the bias for good, by a barrier that the
// kernel executes on all cores of the process (membarrier(2)); from then on this is a std::mutex.
#pragma once

#include "base/assert.h"

#include <atomic>
#include <mutex>

namespace diomp {

/// Lockable; not recursive. Must be unlocked by the thread that has locked it.
class biased_mutex {
public:
    /// Registers the process for that barrier. In a process without other threads this costs
    /// nothing, later 10 ms. If it was not called before, the first lock registers the process. If
    /// the kernel refuses, all biased mutexes are plain mutexes.
    static void prepare();

    void lock() {
        const void *const self = &own_address;
        if (owner_.load(std::memory_order_relaxed) == self &&
            !is_inside_.load(std::memory_order_acquire)) [[likely]] {
            is_inside_.store(true, std::memory_order_relaxed);
            // Either the thread that revokes the bias sees is_inside_, or this thread sees the
            // revocation.
            std::atomic_signal_fence(std::memory_order_seq_cst);
            if (owner_.load(std::memory_order_relaxed) == self) [[likely]] {
                DIOMP_ASSERT(!by_owner_, "the lock is free");
                by_owner_ = true;
                return;
            }
            is_inside_.store(false, std::memory_order_release);
        }
        lock_slow(self);
    }
    void unlock() {
        if (by_owner_) [[likely]] {
            DIOMP_ASSERT(is_inside_.load(std::memory_order_relaxed),
                         "the thread that unlocks holds the lock");
            by_owner_ = false;
            is_inside_.store(false, std::memory_order_release);
        } else {
            mutex_.unlock();
        }
    }

private:
    void lock_slow(const void *self);
    void revoke_bias();

    static thread_local char own_address; ///< its address identifies the thread

    std::atomic<const void *> owner_{nullptr};
    std::atomic<bool> is_inside_{false}; ///< the owner holds the lock, without mutex_
    bool by_owner_ = false;              ///< the lock is held through the bias
    std::mutex mutex_;
};

} // namespace diomp
