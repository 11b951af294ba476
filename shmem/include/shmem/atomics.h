/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/** @file shmem/atomics.h Atomic operations (OpenSHMEM 1.6, 9.7). Part of shmem.h. */
#ifndef SHMEM_ATOMICS_H
#define SHMEM_ATOMICS_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A form with and without a context: result(SHMEM_JOIN_) name(context, arguments). */
#define SHMEM_AMO_(result, name, operation, ...)                                                   \
    SHMEM_API_ result shmem_##name##_atomic_##operation(__VA_ARGS__);                              \
    SHMEM_API_ result shmem_ctx_##name##_atomic_##operation(shmem_ctx_t ctx, __VA_ARGS__);

#define SHMEM_DECLARE_EXTENDED_AMO_(name, type)                                                    \
    SHMEM_AMO_(type, name, fetch, const type *source, int pe)                                      \
    SHMEM_AMO_(void, name, set, type *dest, type value, int pe)                                    \
    SHMEM_AMO_(type, name, swap, type *dest, type value, int pe)                                   \
    SHMEM_AMO_(void, name, fetch_nbi, type *fetch, const type *source, int pe)                     \
    SHMEM_AMO_(void, name, swap_nbi, type *fetch, type *dest, type value, int pe)
SHMEM_EXTENDED_AMO_TYPES_(SHMEM_DECLARE_EXTENDED_AMO_)

#define SHMEM_DECLARE_AMO_(name, type)                                                             \
    SHMEM_AMO_(type, name, compare_swap, type *dest, type cond, type value, int pe)                \
    SHMEM_AMO_(type, name, fetch_inc, type *dest, int pe)                                          \
    SHMEM_AMO_(void, name, inc, type *dest, int pe)                                                \
    SHMEM_AMO_(type, name, fetch_add, type *dest, type value, int pe)                              \
    SHMEM_AMO_(void, name, add, type *dest, type value, int pe)                                    \
    SHMEM_AMO_(void, name, compare_swap_nbi, type *fetch, type *dest, type cond, type value,       \
               int pe)                                                                             \
    SHMEM_AMO_(void, name, fetch_inc_nbi, type *fetch, type *dest, int pe)                         \
    SHMEM_AMO_(void, name, fetch_add_nbi, type *fetch, type *dest, type value, int pe)
SHMEM_AMO_TYPES_(SHMEM_DECLARE_AMO_)

#define SHMEM_DECLARE_BITWISE_(name, type)                                                         \
    SHMEM_AMO_(type, name, fetch_and, type *dest, type value, int pe)                              \
    SHMEM_AMO_(void, name, and, type *dest, type value, int pe)                                    \
    SHMEM_AMO_(type, name, fetch_or, type *dest, type value, int pe)                               \
    SHMEM_AMO_(void, name, or, type * dest, type value, int pe)                                    \
    SHMEM_AMO_(type, name, fetch_xor, type *dest, type value, int pe)                              \
    SHMEM_AMO_(void, name, xor, type *dest, type value, int pe)                                    \
    SHMEM_AMO_(void, name, fetch_and_nbi, type *fetch, type *dest, type value, int pe)             \
    SHMEM_AMO_(void, name, fetch_or_nbi, type *fetch, type *dest, type value, int pe)              \
    SHMEM_AMO_(void, name, fetch_xor_nbi, type *fetch, type *dest, type value, int pe)
SHMEM_BITWISE_TYPES_(SHMEM_DECLARE_BITWISE_)

/* Deprecated. */
#define SHMEM_DECLARE_OLD_EXTENDED_(name, type)                                                    \
    SHMEM_API_ type shmem_##name##_fetch(const type *source, int pe);                              \
    SHMEM_API_ void shmem_##name##_set(type *dest, type value, int pe);                            \
    SHMEM_API_ type shmem_##name##_swap(type *dest, type value, int pe);
SHMEM_OLD_EXTENDED_TYPES_(SHMEM_DECLARE_OLD_EXTENDED_)

#define SHMEM_DECLARE_OLD_AMO_(name, type)                                                         \
    SHMEM_API_ type shmem_##name##_cswap(type *dest, type cond, type value, int pe);               \
    SHMEM_API_ type shmem_##name##_finc(type *dest, int pe);                                       \
    SHMEM_API_ void shmem_##name##_inc(type *dest, int pe);                                        \
    SHMEM_API_ type shmem_##name##_fadd(type *dest, type value, int pe);                           \
    SHMEM_API_ void shmem_##name##_add(type *dest, type value, int pe);
SHMEM_OLD_AMO_TYPES_(SHMEM_DECLARE_OLD_AMO_)

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* SHMEM_ATOMICS_H */
