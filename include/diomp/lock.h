/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/lock.h
 * Locks at an address in memory that all ranks have. Part of diomp.h, which holds the conventions;
 * include diomp.h.
 */
#ifndef DIOMP_LOCK_H
#define DIOMP_LOCK_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Locks at an address ---- */

/**
 * A lock in symmetric memory, or in memory that all ranks have registered together
 * (ompx_register_symmetric(): static data). It is free if the words of all ranks are 0, as in
 * memory of omp_calloc, and it takes 8 bytes, so that a program has as many as it needs, in arrays
 * and in structures. Between the calls below the program must not change it. Memory of
 * ompx_register() has no locks: only its owner has it, but each rank that waits needs a word.
 */
typedef struct ompx_lock_t {
    uint64_t word; /**< the runtime's */
} ompx_lock_t;

/** Frees locks[count], which need not be initialised. Collective; a barrier. No rank may hold or
 * wait for one. */
OMPX_API_ int ompx_lock_at_init(ompx_lock_t *locks, size_t count) OMPX_NOEXCEPT_;
/**
 * Acquires or releases a lock for the calling rank. Locking blocks until the lock is granted.
 * Waiting ranks form a queue and get the lock in the order in which they have entered it; each
 * polls its own memory, and the rank that unlocks notifies the next one. Acquire and release order
 * memory; unlock includes a fence. OMPX_ERR_LOCK if this rank holds the lock already or another of
 * its threads is waiting for it, or unlocks a lock that it does not hold. OMPX_ERR_ADDRESS if the
 * lock is in neither kind of memory.
 *
 * After OMPX_ERR_TIMEOUT the rank stays in the queue, and a further ompx_lock_at() continues the
 * wait. OpenSHMEM 1.5, 9.12 (shmem_set_lock); Mellor-Crummey and Scott, "Algorithms for scalable
 * synchronization on shared-memory multiprocessors", 1991.
 */
OMPX_API_ int ompx_lock_at(ompx_lock_t *lock) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_unlock_at(ompx_lock_t *lock) OMPX_NOEXCEPT_;
/** Acquires the lock if it is free, otherwise returns OMPX_ERR_BUSY without waiting for another
 * rank's unlock. */
OMPX_API_ int ompx_try_lock_at(ompx_lock_t *lock) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_LOCK_H */
