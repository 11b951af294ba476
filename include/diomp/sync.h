/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/sync.h
 * Completion of transfers, barriers and locks. Part of diomp.h, which holds the conventions.
 */
#ifndef DIOMP_SYNC_H
#define DIOMP_SYNC_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Completion and synchronisation ---- */

/**
 * Blocks until all transfers that this rank has started are complete and visible at their targets;
 * with a group, until those to its members are. Does not synchronise ranks.
 */
OMPX_API_ int ompx_fence(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_fence_group(ompx_group_t group) OMPX_NOEXCEPT_;
/** Blocks until all transfers that this rank has started to `rank` are complete and visible there.
 * Transfers to ranks on other nodes without an event, signals and atomics are completed at all
 * ranks. */
OMPX_API_ int ompx_fence_rank(int rank) OMPX_NOEXCEPT_;
/**
 * Orders without completion: what this rank has put to a rank before the call (puts, put_signal,
 * atomics) is visible there before what it puts to that rank afterwards. Does not order gets, and
 * transfers to different ranks only by what their targets do. Costs a store fence within a node.
 * Between nodes no network of DiOMP keeps the order of transfers by itself: the call waits there
 * until the earlier ones are complete. Compare shmem_fence (OpenSHMEM 1.5).
 */
OMPX_API_ int ompx_order(void) OMPX_NOEXCEPT_;

enum { OMPX_RMA_PUT = 1, OMPX_RMA_GET = 2, OMPX_RMA_ATOMIC = 4, OMPX_RMA_ALL = 7 };
/** Blocks until this rank's transfers of the given kinds (bits above) are complete (DiOMP 2024,
 * ompx_waitRMA). */
OMPX_API_ int ompx_waitRMA(int kind) OMPX_NOEXCEPT_;
/** Blocks until all of this rank's transfers are complete. */
OMPX_API_ int ompx_waitALLRMA(void) OMPX_NOEXCEPT_;

/** Collective. Blocks until all members have called it; includes a fence. ompx_barrier(group) and
 * ompx_fence(group) are valid too. */
OMPX_API_ int ompx_barrier(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_barrier_group(ompx_group_t group) OMPX_NOEXCEPT_;
/** Barrier without a fence: collective, blocks until all members have called it. Transfers to ranks
 * on other nodes may still be in flight afterwards; use it where signals or an earlier fence order
 * the data. Compare shmem_team_sync (OpenSHMEM 1.5). */
OMPX_API_ int ompx_sync(ompx_group_t group) OMPX_NOEXCEPT_;

/**
 * Acquires or releases the lock at `rank` for the calling rank (DiOMP 2024, fig. 2). Locking blocks
 * until the lock is granted. A free lock is granted at once, to ranks of the same node without a
 * message; waiting ranks are granted it in the order of their requests. Acquire and release order
 * memory; unlock includes a fence. OMPX_ERR_LOCK if this rank holds the lock already, or unlocks a
 * lock that it does not hold.
 */
OMPX_API_ int ompx_lock(int rank) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_unlock(int rank) OMPX_NOEXCEPT_;
/** Acquires the lock if it is free, otherwise returns OMPX_ERR_BUSY at once. */
OMPX_API_ int ompx_try_lock(int rank) OMPX_NOEXCEPT_;
/** Locks for threads: each excludes all other threads of all ranks. They are independent of the
 * locks of ompx_lock(). */
OMPX_API_ int ompx_lockt(int rank) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_unlockt(int rank) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_try_lockt(int rank) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_SYNC_H */
