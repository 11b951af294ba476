/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/transfer.h
 * One-sided transfers. Part of diomp.h, which holds the conventions.
 */
#ifndef DIOMP_TRANSFER_H
#define DIOMP_TRANSFER_H

#include "status.h"
#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- One-sided transfers ---- */

/**
 * Copies nbytes from src (this process) to dst at `rank`. Returns when src may be reused; the
 * transfer is complete at the target after ompx_fence(). An aligned transfer of 1, 2, 4 or 8 bytes
 * is a single access. In all transfers, source and destination must not overlap.
 */
OMPX_API_ int ompx_put(int rank, void *dst, const void *src, size_t nbytes) OMPX_NOEXCEPT_;
/** Copies nbytes from src at `rank` to dst (this process). Blocks until dst holds the data. */
OMPX_API_ int ompx_get(void *dst, int rank, const void *src, size_t nbytes) OMPX_NOEXCEPT_;

/** Non-blocking put and get. The local buffer must not be changed (put) or used (get) until *event
 * is complete. With a null `event`, the next ompx_fence() of this rank or a call that includes one
 * (ompx_barrier, ompx_unlock) completes the transfer, as for shmem_put_nbi and shmem_get_nbi
 * (OpenSHMEM 1.5, 9.6). */
OMPX_API_ int ompx_put_nb(int rank, void *dst, const void *src, size_t nbytes,
                          ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_nb(void *dst, int rank, const void *src, size_t nbytes,
                          ompx_event_t *event) OMPX_NOEXCEPT_;
/** Sets *done to 1 if the event is complete, otherwise to 0; a complete event is released and set
 * to NULL. Returns the operation's status. Makes progress, does not block. */
OMPX_API_ int ompx_event_test(ompx_event_t *event, int *done) OMPX_NOEXCEPT_;
/** Blocks until the event is complete, releases it and sets it to NULL. Returns the operation's
 * status. */
OMPX_API_ int ompx_event_wait(ompx_event_t *event) OMPX_NOEXCEPT_;

/*
 * Transfers within a node are usually complete on return; the inline functions below then avoid a
 * call. DIOMP_STATS does not count such waits and interposed libraries do not see them. Define
 * OMPX_NO_INLINE before the include to always call the library. Code for GPUs has functions of its
 * own (diomp/device.h).
 */
/* NOLINTBEGIN(readability-identifier-naming,modernize-use-nullptr) */
OMPX_API_ int ompx_event_test_started_(ompx_event_t *event, int *done) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_event_wait_started_(ompx_event_t *event) OMPX_NOEXCEPT_;
#if !defined(OMPX_NO_INLINE) && !defined(DIOMP_FOR_GPU_)
#define OMPX_IN_LINE_ extern __inline__ __attribute__((gnu_inline))
OMPX_IN_LINE_ int ompx_event_test(ompx_event_t *event, int *done) OMPX_NOEXCEPT_ {
    if (event == NULL || *event != NULL || done == NULL) {
        return ompx_event_test_started_(event, done);
    }
    __atomic_thread_fence(__ATOMIC_RELEASE); /* order later stores after the transfer's bytes */
    *done = 1;
    return OMPX_SUCCESS;
}
OMPX_IN_LINE_ int ompx_event_wait(ompx_event_t *event) OMPX_NOEXCEPT_ {
    if (event == NULL || *event != NULL) {
        return ompx_event_wait_started_(event);
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return OMPX_SUCCESS;
}
#endif
/* NOLINTEND(readability-identifier-naming,modernize-use-nullptr) */

/** Put and get of an n-dimensional box, with the arguments of omp_target_memcpy_rect (OpenMP 5.2,
 * 18.8.7): 1 to 32 dimensions; volume, offsets and dimensions [num_dims] are in elements, slowest
 * dimension first; element_size is in bytes. Completion as for ompx_put() and ompx_get(). */
OMPX_API_ int ompx_put_rect(int rank, void *dst, const void *src, size_t element_size, int num_dims,
                            const size_t *volume, const size_t *dst_offsets,
                            const size_t *src_offsets, const size_t *dst_dimensions,
                            const size_t *src_dimensions) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_rect(void *dst, int rank, const void *src, size_t element_size, int num_dims,
                            const size_t *volume, const size_t *dst_offsets,
                            const size_t *src_offsets, const size_t *dst_dimensions,
                            const size_t *src_dimensions) OMPX_NOEXCEPT_;

/* gcc has detach events since version 11, but _OPENMP says 4.5. */
#if defined(_OPENMP) && (_OPENMP >= 201811 || defined(__clang__) || __GNUC__ >= 11)
/** Non-blocking put and get whose completion (of a put: at its target) fulfils the detach event of
 * an OpenMP task (OpenMP 5.0, 2.10.1). OMPX_ERR_UNSUPPORTED without omp_fulfill_event in the
 * program's OpenMP. */
OMPX_API_ int ompx_put_detach(int rank, void *dst, const void *src, size_t nbytes,
                              omp_event_handle_t event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_detach(void *dst, int rank, const void *src, size_t nbytes,
                              omp_event_handle_t event) OMPX_NOEXCEPT_;
/**
 * Attaches a transfer or collective in flight to an OpenMP task: its completion fulfils the detach
 * event `task`; *event is set to NULL. Any _nb operation can thus be a task with `depend`. An error
 * of the operation ends the job. Does not block. OMPX_ERR_UNSUPPORTED without omp_fulfill_event in
 * the program's OpenMP.
 */
OMPX_API_ int ompx_event_detach(ompx_event_t *event, omp_event_handle_t task) OMPX_NOEXCEPT_;
#endif

/** Put, then update of *signal at `rank` (8-byte aligned): a thread that sees the new value sees
 * the data (OpenSHMEM 1.5, 9.8). Returns when src may be reused. */
OMPX_API_ int ompx_put_signal(int rank, void *dst, const void *src, size_t nbytes, uint64_t *signal,
                              uint64_t value, ompx_signal_op_t op) OMPX_NOEXCEPT_;
/** ompx_put_rect(), then update of *signal at `rank` as by ompx_put_signal(): a thread that sees
 * the new value sees the whole box. Returns when src may be reused. An empty box updates the
 * signal. */
OMPX_API_ int ompx_put_rect_signal(int rank, void *dst, const void *src, size_t element_size,
                                   int num_dims, const size_t *volume, const size_t *dst_offsets,
                                   const size_t *src_offsets, const size_t *dst_dimensions,
                                   const size_t *src_dimensions, uint64_t *signal, uint64_t value,
                                   ompx_signal_op_t op) OMPX_NOEXCEPT_;
/** Blocks until `*signal cmp value` holds for the local *signal. */
OMPX_API_ int ompx_signal_wait(const uint64_t *signal, ompx_cmp_t cmp,
                               uint64_t value) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_TRANSFER_H */
