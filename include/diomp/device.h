/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device.h
 * Communication inside target regions: the calls that a team makes together, and, when clang
 * compiles for a GPU, the definitions of diomp.h's calls there. Part of diomp.h; include diomp.h.
 *
 * Inside a target region, on any device, these calls have the arguments and the meaning that they
 * have on the host: ompx_rank_num, ompx_get_rank_num, ompx_num_ranks, ompx_get_num_ranks,
 * ompx_remote_ptr, ompx_put, ompx_get, ompx_put_nb and ompx_get_nb, ompx_event_wait and
 * ompx_event_test, ompx_put_signal, ompx_signal_wait, ompx_signal_test, ompx_wait_until,
 * ompx_atomic_*, ompx_fence, ompx_waitRMA, ompx_waitALLRMA, ompx_barrier. A host device runs the
 * library's own functions. On a GPU
 *  - a remote location is named by an address in the symmetric memory of the device
 *    (ompx_target_alloc) or in memory that OpenMP has mapped there: the same offset in the segment
 *    of the other rank's device;
 *  - an error is returned, and the sentence is reported when the region ends, as that of a call on
 *    the host would be (DIOMP_ERRORS), by the thread that waits for the region;
 *  - ompx_barrier waits for the corresponding device of all members; groups with hosts or several
 *    devices of a rank are OMPX_ERR_UNSUPPORTED;
 *  - atomics order no other accesses; ompx_put_signal and ompx_fence do.
 * What may wait for what, and which memory each path reaches: docs/device-calls.md.
 */
#ifndef DIOMP_DEVICE_H
#define DIOMP_DEVICE_H

#include "transfer.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Transfers by all threads of a team ---- */

/*
 * Called by all threads of a parallel region with equal arguments, in a target region or on the
 * host, outside of worksharing constructs. On a GPU the threads copy together; elsewhere one thread
 * makes the call for all. All threads receive the same status, and return when all have done their
 * part: the source may be changed, and a get's destination read, by each of them. Outside of a
 * parallel region they are the calls of one thread.
 */

#if defined(DIOMP_FOR_GPU_)
#include "device_gpu.h"
#endif

/* The call of one thread for all threads of a team. */
#if defined(_OPENMP)
#define DIOMP_FOR_TEAM_(call)                                                                      \
    int status = OMPX_SUCCESS;                                                                     \
    _Pragma("omp barrier") _Pragma("omp single copyprivate(status)") status = (call);              \
    return status;
#else
#define DIOMP_FOR_TEAM_(call) return call;
#endif

/** ompx_put() by all threads of a team. */
static inline int ompx_team_put(int rank, void *dst, const void *src,
                                size_t nbytes) OMPX_NOEXCEPT_ {
#if defined(DIOMP_FOR_GPU_)
    return diomp_team_put(rank, dst, src, nbytes);
#else
    DIOMP_FOR_TEAM_(ompx_put(rank, dst, src, nbytes))
#endif
}

/** ompx_get() by all threads of a team. */
static inline int ompx_team_get(void *dst, int rank, const void *src,
                                size_t nbytes) OMPX_NOEXCEPT_ {
#if defined(DIOMP_FOR_GPU_)
    return diomp_team_get(dst, rank, src, nbytes);
#else
    DIOMP_FOR_TEAM_(ompx_get(dst, rank, src, nbytes))
#endif
}

/** ompx_put_signal() by all threads of a team: the signal is updated once, after the data of all
 * threads. */
static inline int ompx_team_put_signal(int rank, void *dst, const void *src, size_t nbytes,
                                       uint64_t *signal, uint64_t value,
                                       ompx_signal_op_t op) OMPX_NOEXCEPT_ {
#if defined(DIOMP_FOR_GPU_)
    return diomp_team_put_signal(rank, dst, src, nbytes, signal, value, op);
#else
    DIOMP_FOR_TEAM_(ompx_put_signal(rank, dst, src, nbytes, signal, value, op))
#endif
}

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_DEVICE_H */
