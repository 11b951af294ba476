// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The locks of diomp.h as standard mutexes: usable with std::unique_lock, std::scoped_lock and
// std::lock_guard.
#ifndef DIOMP_LOCK_HPP
#define DIOMP_LOCK_HPP

#include "diomp.h"
#include "diomp/error.hpp"

namespace diomp {
inline namespace v1 {

/// Refers to the lock at a rank; copies refer to the same lock. It is held by a rank, not by a
/// thread: a second thread of the rank that holds it gets an error instead of waiting (see
/// thread_mutex).
class rank_mutex {
public:
    constexpr explicit rank_mutex(int rank) noexcept : rank_(rank) {}
    [[nodiscard]] constexpr int rank() const noexcept { return rank_; }

    void lock() const { detail::check(ompx_lock(rank_)); }
    [[nodiscard]] bool try_lock() const {
        const int status = ompx_try_lock(rank_);
        return status != OMPX_ERR_BUSY && detail::check(status) == 0;
    }
    /// Includes a fence.
    void unlock() const { detail::check(ompx_unlock(rank_)); }

private:
    int rank_;
};

/// The lock at a rank that excludes all other threads of all ranks.
class thread_mutex {
public:
    constexpr explicit thread_mutex(int rank) noexcept : rank_(rank) {}
    [[nodiscard]] constexpr int rank() const noexcept { return rank_; }

    void lock() const { detail::check(ompx_lockt(rank_)); }
    [[nodiscard]] bool try_lock() const {
        const int status = ompx_try_lockt(rank_);
        return status != OMPX_ERR_BUSY && detail::check(status) == 0;
    }
    void unlock() const { detail::check(ompx_unlockt(rank_)); }

private:
    int rank_;
};

/// A lock in symmetric memory (ompx_lock_t); copies refer to the same lock. It is held by a rank,
/// as that of rank_mutex.
class queue_mutex {
public:
    constexpr explicit queue_mutex(ompx_lock_t *lock) noexcept : lock_(lock) {}
    [[nodiscard]] constexpr ompx_lock_t *get() const noexcept { return lock_; }

    void lock() const { detail::check(ompx_lock_at(lock_)); }
    [[nodiscard]] bool try_lock() const {
        const int status = ompx_try_lock_at(lock_);
        return status != OMPX_ERR_BUSY && detail::check(status) == 0;
    }
    /// Includes a fence.
    void unlock() const { detail::check(ompx_unlock_at(lock_)); }

private:
    ompx_lock_t *lock_;
};

/// Holds the lock at a rank during a scope: `diomp::lock_guard hold(0);`
template <typename Mutex = rank_mutex>
class [[nodiscard]] lock_guard {
public:
    explicit lock_guard(int rank) : lock_guard(Mutex(rank)) {}
    explicit lock_guard(Mutex mutex) : mutex_(mutex) { mutex_.lock(); }
    lock_guard(const lock_guard &) = delete;
    lock_guard &operator=(const lock_guard &) = delete;
    ~lock_guard() {
        // Destructors ignore errors; the runtime has reported the error.
#if defined(__cpp_exceptions)
        try {
            mutex_.unlock();
        } catch (const error &) { // NOLINT(bugprone-empty-catch)
        }
#else
        mutex_.unlock();
#endif
    }

private:
    Mutex mutex_;
};
lock_guard(int) -> lock_guard<rank_mutex>;

} // namespace v1
} // namespace diomp

#endif // DIOMP_LOCK_HPP
