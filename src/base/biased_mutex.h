// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A mutex that belongs to the first thread that locks it. As long as no other thread comes, locking
// and unlocking are plain loads and stores: a locked instruction would wait until all earlier
// stores of its core are visible, which for a store that another core polls takes longer than
// everything else that a small call does. The first other thread takes that away for good, by a
// barrier that the kernel executes on all cores of the process (membarrier(2)); then this is a
// std::mutex.
#pragma once

#include <atomic>
#include <mutex>

namespace diomp {

/// Lockable; not recursive. Unlocked by the thread that has locked it.
class biased_mutex {
public:
    /// Asks the kernel for that barrier. In a process without other threads this costs nothing,
    /// later 10 ms; the first lock does it if nobody has. Where the kernel refuses, all these are
    /// plain mutexes.
    static void prepare();

    void lock() {
        const void *const self = &own_address;
        if (owner_.load(std::memory_order_relaxed) == self &&
            !is_inside_.load(std::memory_order_acquire)) [[likely]] {
            is_inside_.store(true, std::memory_order_relaxed);
            // Whoever ends the privilege sees that we are inside, or we see that it has ended.
            std::atomic_signal_fence(std::memory_order_seq_cst);
            if (owner_.load(std::memory_order_relaxed) == self) [[likely]] {
                by_owner_ = true;
                return;
            }
            is_inside_.store(false, std::memory_order_release);
        }
        lock_shared_by_all(self);
    }
    void unlock() {
        if (by_owner_) [[likely]] {
            by_owner_ = false;
            is_inside_.store(false, std::memory_order_release);
        } else {
            mutex_.unlock();
        }
    }

private:
    void lock_shared_by_all(const void *self);
    void end_privilege();

    static thread_local char own_address; ///< tells threads apart

    std::atomic<const void *> owner_{nullptr};
    std::atomic<bool> is_inside_{false}; ///< the owner, without the mutex
    bool by_owner_ = false;              ///< whoever holds this has got it so
    std::mutex mutex_;
};

} // namespace diomp
