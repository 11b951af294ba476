// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A mutex for critical sections of some ten instructions that several threads enter often: a thread
// that finds it locked spins for a while before it sleeps. With std::mutex, threads that send small
// messages concurrently put each other to sleep in the kernel (docs/benchmarks.md).
#pragma once

#include <pthread.h>

namespace diomp {

/// Lockable; not recursive.
class adaptive_mutex {
public:
    adaptive_mutex() = default;
    ~adaptive_mutex() { ::pthread_mutex_destroy(&mutex_); }
    adaptive_mutex(const adaptive_mutex &) = delete;
    adaptive_mutex &operator=(const adaptive_mutex &) = delete;

    void lock() { ::pthread_mutex_lock(&mutex_); }
    bool try_lock() { return ::pthread_mutex_trylock(&mutex_) == 0; }
    void unlock() { ::pthread_mutex_unlock(&mutex_); }

private:
#if defined(PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP)
    ::pthread_mutex_t mutex_ = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
    ::pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
#endif
};

} // namespace diomp
