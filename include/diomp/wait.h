/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/wait.h
 * Waits and tests of local signals and words, and progress. Part of diomp.h, which holds the
 * conventions; include diomp.h.
 */
#ifndef DIOMP_WAIT_H
#define DIOMP_WAIT_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Waits and tests ---- */

/**
 * Handles what other ranks have sent to this rank, and continues this rank's operations. Does not
 * block. Never necessary, since a thread of the runtime does this too, but that thread sleeps while
 * there is nothing to do: a loop that polls memory by loads of its own, or computes for long, gets
 * messages earlier if it calls this now and then. Calls that wait or test include it.
 */
OMPX_API_ int ompx_progress(void) OMPX_NOEXCEPT_;

/** Returns 1 if `*signal cmp value` holds for the local *signal (8-byte aligned), 0 if not, or a
 * negative status. After 1 the thread sees the data that was put before the signal. Makes progress,
 * does not block. OpenSHMEM 1.5, 9.9.9 (shmem_test). */
OMPX_API_ int ompx_signal_test(const uint64_t *signal, ompx_cmp_t cmp,
                               uint64_t value) OMPX_NOEXCEPT_;
/** ompx_signal_wait() that stores the value that ended the wait in *result (result may be NULL):
 * other ranks may have changed *signal since. */
OMPX_API_ int ompx_signal_wait_fetch(const uint64_t *signal, ompx_cmp_t cmp, uint64_t value,
                                     uint64_t *result) OMPX_NOEXCEPT_;
/**
 * Wait for one (any), at least one (some) or each (all) of signals[count] to fulfil the comparison;
 * the waits block, the tests return 1 or 0 like ompx_signal_test(). An element with skip[i] != 0 is
 * left out; NULL: none is. *index receives the first element that fulfils the comparison;
 * indices[count] receives all that do, in ascending order, and *num_found their number. With no
 * element to wait for, _any and _some return at once (the test: 0) with OMPX_NO_INDEX or 0
 * elements, and _all returns at once (the test: 1). Set skip[i] or change the signal before the
 * next call, or the element is found again. OpenSHMEM 1.5, 9.9.
 */
OMPX_API_ int ompx_signal_wait_any(const uint64_t *signals, size_t count, const int *skip,
                                   ompx_cmp_t cmp, uint64_t value, size_t *index) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_signal_wait_some(const uint64_t *signals, size_t count, const int *skip,
                                    ompx_cmp_t cmp, uint64_t value, size_t *indices,
                                    size_t *num_found) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_signal_wait_all(const uint64_t *signals, size_t count, const int *skip,
                                   ompx_cmp_t cmp, uint64_t value) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_signal_test_any(const uint64_t *signals, size_t count, const int *skip,
                                   ompx_cmp_t cmp, uint64_t value, size_t *index) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_signal_test_some(const uint64_t *signals, size_t count, const int *skip,
                                    ompx_cmp_t cmp, uint64_t value, size_t *indices,
                                    size_t *num_found) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_signal_test_all(const uint64_t *signals, size_t count, const int *skip,
                                   ompx_cmp_t cmp, uint64_t value) OMPX_NOEXCEPT_;

/** Blocks until `*variable cmp *value` holds for the local *variable, an integer of 8, 16, 32 or 64
 * bits that is aligned to its size and changed by put_signal, atomics or puts of its size. */
OMPX_API_ int ompx_wait_until(const void *variable, ompx_type_t type, ompx_cmp_t cmp,
                              const void *value) OMPX_NOEXCEPT_;
/** ompx_wait_until() that stores the value that ended the wait in *result, of the same type; result
 * may be NULL. */
OMPX_API_ int ompx_wait_until_fetch(const void *variable, ompx_type_t type, ompx_cmp_t cmp,
                                    const void *value, void *result) OMPX_NOEXCEPT_;
/** Returns 1 if `*variable cmp *value` holds, 0 if not, or a negative status. Makes progress, does
 * not block. Types as for ompx_wait_until(). */
OMPX_API_ int ompx_test_until(const void *variable, ompx_type_t type, ompx_cmp_t cmp,
                              const void *value) OMPX_NOEXCEPT_;
/** The forms of ompx_signal_wait_any() and its siblings for variables[count] of an integer type,
 * compared with values[num_values]: one value for all (1), or one for each (count). */
OMPX_API_ int ompx_wait_until_any(const void *variables, ompx_type_t type, size_t count,
                                  const int *skip, ompx_cmp_t cmp, const void *values,
                                  size_t num_values, size_t *index) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_wait_until_some(const void *variables, ompx_type_t type, size_t count,
                                   const int *skip, ompx_cmp_t cmp, const void *values,
                                   size_t num_values, size_t *indices,
                                   size_t *num_found) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_wait_until_all(const void *variables, ompx_type_t type, size_t count,
                                  const int *skip, ompx_cmp_t cmp, const void *values,
                                  size_t num_values) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_test_until_any(const void *variables, ompx_type_t type, size_t count,
                                  const int *skip, ompx_cmp_t cmp, const void *values,
                                  size_t num_values, size_t *index) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_test_until_some(const void *variables, ompx_type_t type, size_t count,
                                   const int *skip, ompx_cmp_t cmp, const void *values,
                                   size_t num_values, size_t *indices,
                                   size_t *num_found) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_test_until_all(const void *variables, ompx_type_t type, size_t count,
                                  const int *skip, ompx_cmp_t cmp, const void *values,
                                  size_t num_values) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_WAIT_H */
