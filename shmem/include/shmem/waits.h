/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/** @file shmem/waits.h Point-to-point synchronisation (OpenSHMEM 1.6, 9.10). Part of shmem.h. */
#ifndef SHMEM_WAITS_H
#define SHMEM_WAITS_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* One value for all variables, or with `_vector` one for each. */
#define SHMEM_WAIT_SET_(name, type, after, value)                                                  \
    SHMEM_API_ void shmem_##name##_wait_until_all##after(type *ivars, size_t nelems,               \
                                                         const int *status, int cmp, value);       \
    SHMEM_API_ size_t shmem_##name##_wait_until_any##after(type *ivars, size_t nelems,             \
                                                           const int *status, int cmp, value);     \
    SHMEM_API_ size_t shmem_##name##_wait_until_some##after(                                       \
        type *ivars, size_t nelems, size_t *indices, const int *status, int cmp, value);           \
    SHMEM_API_ int shmem_##name##_test_all##after(type *ivars, size_t nelems, const int *status,   \
                                                  int cmp, value);                                 \
    SHMEM_API_ size_t shmem_##name##_test_any##after(type *ivars, size_t nelems,                   \
                                                     const int *status, int cmp, value);           \
    SHMEM_API_ size_t shmem_##name##_test_some##after(type *ivars, size_t nelems, size_t *indices, \
                                                      const int *status, int cmp, value);

#define SHMEM_DECLARE_WAITS_(name, type)                                                           \
    SHMEM_API_ void shmem_##name##_wait_until(type *ivar, int cmp, type cmp_value);                \
    SHMEM_API_ int shmem_##name##_test(type *ivar, int cmp, type cmp_value);                       \
    SHMEM_WAIT_SET_(name, type, , type cmp_value)                                                  \
    SHMEM_WAIT_SET_(name, type, _vector, const type *cmp_values)
SHMEM_WAIT_TYPES_(SHMEM_DECLARE_WAITS_)

SHMEM_API_ uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value);

/* Deprecated. The generic forms replace the two without a type in C11 and C++. */
#define SHMEM_DECLARE_OLD_WAIT_(name, type)                                                        \
    SHMEM_API_ void shmem_##name##_wait(type *ivar, type cmp_value);
SHMEM_OLD_WAIT_TYPES_(SHMEM_DECLARE_OLD_WAIT_)
#if !defined(__cplusplus) || defined(SHMEM_DEFINE_UNTYPED_)
SHMEM_API_ void shmem_wait_until(long *ivar, int cmp, long cmp_value);
SHMEM_API_ void shmem_wait(long *ivar, long cmp_value);
#endif

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* SHMEM_WAITS_H */
