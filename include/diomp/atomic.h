/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/atomic.h
 * Operators and atomic operations. Part of diomp.h, which holds the conventions.
 */
#ifndef DIOMP_ATOMIC_H
#define DIOMP_ATOMIC_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Operators, atomics ---- */

/** Bytes of one element; 0 for an unknown type. */
OMPX_API_ size_t ompx_type_size(ompx_type_t type) OMPX_NOEXCEPT_;

/** Creates an operator for reductions. Not collective, but all members of a reduction must pass
 * equivalent operators. Operands are combined in rank order; with commutative != 0 in any order,
 * equal for all members of a call. `context` is passed to the function.
 */
OMPX_API_ int ompx_op_create(ompx_op_t *op, ompx_op_function_t function, void *context,
                             int commutative) OMPX_NOEXCEPT_;
/** Frees an operator and sets *op to 0. Not collective; no reduction may be using it. */
OMPX_API_ int ompx_op_free(ompx_op_t *op) OMPX_NOEXCEPT_;

/**
 * Atomically: *result = *target; *target = *target op *operand, at `rank`. Blocks until *result is
 * set; with a NULL result it need not wait, and ompx_fence() completes it. Types: INT32,
 * UINT32, INT64, UINT64, FLOAT, DOUBLE; operators SUM, MIN, MAX, BAND, BOR, BXOR (integers),
 * REPLACE, NO_OP. target must be aligned to its size. Atomic with respect to all other ompx_atomic
 * calls and put_signal, from any thread of any rank; not to plain loads and stores.
 */
OMPX_API_ int ompx_atomic_fetch(int rank, void *target, const void *operand, void *result,
                                ompx_type_t type, ompx_op_t op) OMPX_NOEXCEPT_;
/** Atomically: *result = *target; if *target equals *expected (bitwise), *target = *desired. result
 * may be NULL. Types, alignment and atomicity as for ompx_atomic_fetch(). */
OMPX_API_ int ompx_atomic_compare_swap(int rank, void *target, const void *expected,
                                       const void *desired, void *result,
                                       ompx_type_t type) OMPX_NOEXCEPT_;

#define OMPX_ATOMIC_FORM_(name, operator_)                                                         \
    static inline int ompx_atomic_##name(int rank, void *target, const void *operand,              \
                                         ompx_type_t type) OMPX_NOEXCEPT_ {                        \
        return ompx_atomic_fetch(rank, target, operand, NULL, type, operator_);                    \
    }                                                                                              \
    static inline int ompx_atomic_fetch_##name(int rank, void *target, const void *operand,        \
                                               void *result, ompx_type_t type) OMPX_NOEXCEPT_ {    \
        return ompx_atomic_fetch(rank, target, operand, result, type, operator_);                  \
    }
OMPX_ATOMIC_FORM_(add, OMPX_SUM)
OMPX_ATOMIC_FORM_(and, OMPX_BAND)
OMPX_ATOMIC_FORM_(or, OMPX_BOR)
OMPX_ATOMIC_FORM_(xor, OMPX_BXOR)
OMPX_ATOMIC_FORM_(min, OMPX_MIN)
OMPX_ATOMIC_FORM_(max, OMPX_MAX)
/** Atomically stores the operand and returns the old value in *result. */
static inline int ompx_atomic_swap(int rank, void *target, const void *operand, void *result,
                                   ompx_type_t type) OMPX_NOEXCEPT_ {
    return ompx_atomic_fetch(rank, target, operand, result, type, OMPX_REPLACE);
}

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_ATOMIC_H */
