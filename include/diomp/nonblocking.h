/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/nonblocking.h
 * Waits for several events, non-blocking boxes, signals and atomics, and contexts. Part of diomp.h,
 * which holds the conventions; include diomp.h.
 */
#ifndef DIOMP_NONBLOCKING_H
#define DIOMP_NONBLOCKING_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Non-blocking boxes, signals, atomics, several events ---- */

/** Blocks until all of events[count] are complete, releases them and sets them to NULL; NULL
 * elements are complete. Returns the status of the first operation that failed.
 * OMPX_ERR_TIMEOUT and OMPX_ERR_PEER leave events that are not complete as they are. */
OMPX_API_ int ompx_event_wait_all(ompx_event_t *events, size_t count) OMPX_NOEXCEPT_;
/**
 * Blocks until one of events[count] is complete, releases it, sets it to NULL and stores its
 * number in *index. NULL elements are complete, and so found again by the next call: set
 * skip[i] to a value other than 0 to leave element i out. skip may be NULL: no element is left
 * out. With no element to wait for, returns at once with OMPX_NO_INDEX. Returns the operation's
 * status.
 */
OMPX_API_ int ompx_event_wait_any(ompx_event_t *events, size_t count, const int *skip,
                                  size_t *index) OMPX_NOEXCEPT_;

/** Non-blocking ompx_put_rect() and ompx_get_rect(). Lists may be reused on return; buffers and
 * completion as for ompx_put_nb() and ompx_get_nb(). */
OMPX_API_ int ompx_put_rect_nb(int rank, void *dst, const void *src, size_t element_size,
                               int num_dims, const size_t *volume, const size_t *dst_offsets,
                               const size_t *src_offsets, const size_t *dst_dimensions,
                               const size_t *src_dimensions, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_rect_nb(void *dst, int rank, const void *src, size_t element_size,
                               int num_dims, const size_t *volume, const size_t *dst_offsets,
                               const size_t *src_offsets, const size_t *dst_dimensions,
                               const size_t *src_dimensions, ompx_event_t *event) OMPX_NOEXCEPT_;

/**
 * Non-blocking ompx_put_signal() and ompx_put_rect_signal(): src must not be changed until
 * *event is complete, which is when data and signal have arrived. With a null `event` the next
 * ompx_fence() completes the operation. A failure after the return is reported by the event or,
 * without one, by the next ompx_fence(); the signal then does not change. Signals of several
 * calls are unordered; with OMPX_SIGNAL_ADD each counts. May block as ompx_atomic_fetch_nb()
 * may. Compare shmem_put_signal_nbi (OpenSHMEM 1.5, 9.8).
 */
OMPX_API_ int ompx_put_signal_nb(int rank, void *dst, const void *src, size_t nbytes,
                                 uint64_t *signal, uint64_t value, ompx_signal_op_t op,
                                 ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_put_rect_signal_nb(int rank, void *dst, const void *src, size_t element_size,
                                      int num_dims, const size_t *volume, const size_t *dst_offsets,
                                      const size_t *src_offsets, const size_t *dst_dimensions,
                                      const size_t *src_dimensions, uint64_t *signal,
                                      uint64_t value, ompx_signal_op_t op,
                                      ompx_event_t *event) OMPX_NOEXCEPT_;

/**
 * Non-blocking ompx_atomic_fetch() and ompx_atomic_compare_swap(). Operands may be reused on
 * return; result must not be used until *event is complete. With a null `event` the next
 * ompx_fence() completes the operation. A target that is unregistered meanwhile is reported by
 * the next ompx_fence(). May block while 1024 such operations and signals of this rank are
 * outstanding, and with DIOMP_NETWORK_ATOMICS=native, where the network performs the operation
 * during the call.
 */
OMPX_API_ int ompx_atomic_fetch_nb(int rank, void *target, const void *operand, void *result,
                                   ompx_type_t type, ompx_op_t op,
                                   ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_atomic_compare_swap_nb(int rank, void *target, const void *expected,
                                          const void *desired, void *result, ompx_type_t type,
                                          ompx_event_t *event) OMPX_NOEXCEPT_;

/* ---- Contexts ---- */

/**
 * Creates a context, an empty set of operations without events. One thread at a time may use it;
 * another one gets OMPX_ERR_STATE. Neither ompx_fence() nor a barrier completes its transfers, so a
 * thread waits for its own only. Not collective, does not block. Compare shmem_ctx_create.
 */
OMPX_API_ int ompx_context_create(ompx_context_t *context) OMPX_NOEXCEPT_;
/** Completes the context's operations, frees it and sets *context to NULL. Blocks. After an error
 * the context stays as it is. */
OMPX_API_ int ompx_context_free(ompx_context_t *context) OMPX_NOEXCEPT_;
/** ompx_put_nb() and ompx_get_nb() without an event, as part of the context: the local buffer must
 * not be changed (put) or used (get) until ompx_context_fence() returns. */
OMPX_API_ int ompx_context_put_nb(ompx_context_t context, int rank, void *dst, const void *src,
                                  size_t nbytes) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_context_get_nb(ompx_context_t context, void *dst, int rank, const void *src,
                                  size_t nbytes) OMPX_NOEXCEPT_;
/** ompx_put_signal_nb() without an event, as part of the context: src must not be changed until
 * ompx_context_fence() returns. */
OMPX_API_ int ompx_context_put_signal_nb(ompx_context_t context, int rank, void *dst,
                                         const void *src, size_t nbytes, uint64_t *signal,
                                         uint64_t value, ompx_signal_op_t op) OMPX_NOEXCEPT_;
/** ompx_atomic_fetch_nb() and ompx_atomic_compare_swap_nb() without an event, as part of the
 * context: result must not be used until ompx_context_fence() returns; it may be NULL. */
OMPX_API_ int ompx_context_atomic_fetch_nb(ompx_context_t context, int rank, void *target,
                                           const void *operand, void *result, ompx_type_t type,
                                           ompx_op_t op) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_context_atomic_compare_swap_nb(ompx_context_t context, int rank, void *target,
                                                  const void *expected, const void *desired,
                                                  void *result, ompx_type_t type) OMPX_NOEXCEPT_;
/** Blocks until the context's operations are complete, those without a result at their targets. */
OMPX_API_ int ompx_context_fence(ompx_context_t context) OMPX_NOEXCEPT_;
#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_NONBLOCKING_H */
