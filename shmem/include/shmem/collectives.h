/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file shmem/collectives.h
 * Collectives over teams and active sets (OpenSHMEM 1.6, 9.9). Part of shmem.h. Buffers may be any
 * memory of the PE. Team forms return 0, or another value on an error. The memory pSync and pWrk of
 * active sets is not used and may be NULL.
 */
#ifndef SHMEM_COLLECTIVES_H
#define SHMEM_COLLECTIVES_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Barriers ---- */

SHMEM_API_ void shmem_barrier_all(void);
SHMEM_API_ void shmem_sync_all(void);
SHMEM_API_ int shmem_team_sync(shmem_team_t team);

#define SHMEM_SET_ARGS_ int PE_start, int logPE_stride, int PE_size
/* Deprecated. */
SHMEM_API_ void shmem_barrier(SHMEM_SET_ARGS_, long *pSync);
#if !defined(__cplusplus) || defined(SHMEM_DEFINE_UNTYPED_)
SHMEM_API_ void shmem_sync(SHMEM_SET_ARGS_, long *pSync);
#endif
/** shmem_sync() over an active set, under a name that no generic form has. */
SHMEM_API_ void shmem_sync_set_(SHMEM_SET_ARGS_, long *pSync);

/* ---- Data ---- */

#define SHMEM_TEAM_FORMS_(before, after, type)                                                     \
    SHMEM_API_ int before##broadcast##after(shmem_team_t team, type *dest, const type *source,     \
                                            size_t nelems, int PE_root);                           \
    SHMEM_API_ int before##collect##after(shmem_team_t team, type *dest, const type *source,       \
                                          size_t nelems);                                          \
    SHMEM_API_ int before##fcollect##after(shmem_team_t team, type *dest, const type *source,      \
                                           size_t nelems);                                         \
    SHMEM_API_ int before##alltoall##after(shmem_team_t team, type *dest, const type *source,      \
                                           size_t nelems);                                         \
    SHMEM_API_ int before##alltoalls##after(shmem_team_t team, type *dest, const type *source,     \
                                            ptrdiff_t dst, ptrdiff_t sst, size_t nelems);
#define SHMEM_DECLARE_COLLECTIVES_(name, type) SHMEM_TEAM_FORMS_(shmem_##name##_, , type)
SHMEM_RMA_TYPES_(SHMEM_DECLARE_COLLECTIVES_)
SHMEM_TEAM_FORMS_(shmem_, mem, void)

/* Deprecated. */
#define SHMEM_SET_FORMS_(bits, nbytes)                                                             \
    SHMEM_API_ void shmem_broadcast##bits(void *dest, const void *source, size_t nelems,           \
                                          int PE_root, SHMEM_SET_ARGS_, long *pSync);              \
    SHMEM_API_ void shmem_collect##bits(void *dest, const void *source, size_t nelems,             \
                                        SHMEM_SET_ARGS_, long *pSync);                             \
    SHMEM_API_ void shmem_fcollect##bits(void *dest, const void *source, size_t nelems,            \
                                         SHMEM_SET_ARGS_, long *pSync);                            \
    SHMEM_API_ void shmem_alltoall##bits(void *dest, const void *source, size_t nelems,            \
                                         SHMEM_SET_ARGS_, long *pSync);                            \
    SHMEM_API_ void shmem_alltoalls##bits(void *dest, const void *source, ptrdiff_t dst,           \
                                          ptrdiff_t sst, size_t nelems, SHMEM_SET_ARGS_,           \
                                          long *pSync);
#define SHMEM_SET_SIZES_(X) X(32, 4) X(64, 8)
SHMEM_SET_SIZES_(SHMEM_SET_FORMS_)

/* ---- Reductions ---- */

#define SHMEM_TEAM_REDUCE_(name, type, operation)                                                  \
    SHMEM_API_ int shmem_##name##_##operation(shmem_team_t team, type *dest, const type *source,   \
                                              size_t nelems);
#define SHMEM_DECLARE_REDUCE_BITS_(name, type)                                                     \
    SHMEM_TEAM_REDUCE_(name, type, and_reduce)                                                     \
    SHMEM_TEAM_REDUCE_(name, type, or_reduce)                                                      \
    SHMEM_TEAM_REDUCE_(name, type, xor_reduce)
#define SHMEM_DECLARE_REDUCE_ORDER_(name, type)                                                    \
    SHMEM_TEAM_REDUCE_(name, type, min_reduce)                                                     \
    SHMEM_TEAM_REDUCE_(name, type, max_reduce)
#define SHMEM_DECLARE_REDUCE_SUM_(name, type)                                                      \
    SHMEM_TEAM_REDUCE_(name, type, sum_reduce)                                                     \
    SHMEM_TEAM_REDUCE_(name, type, prod_reduce)                                                    \
    SHMEM_TEAM_REDUCE_(name, type, sum_inscan)                                                     \
    SHMEM_TEAM_REDUCE_(name, type, sum_exscan)
SHMEM_REDUCE_BITS_TYPES_(SHMEM_DECLARE_REDUCE_BITS_)
SHMEM_REDUCE_ORDER_TYPES_(SHMEM_DECLARE_REDUCE_ORDER_)
SHMEM_REDUCE_SUM_TYPES_(SHMEM_DECLARE_REDUCE_SUM_)

/* Deprecated. */
#define SHMEM_TO_ALL_(name, type, operation)                                                       \
    SHMEM_API_ void shmem_##name##_##operation##_to_all(                                           \
        type *dest, const type *source, int nreduce, SHMEM_SET_ARGS_, type *pWrk, long *pSync);
#define SHMEM_DECLARE_TO_ALL_BITS_(name, type)                                                     \
    SHMEM_TO_ALL_(name, type, and) SHMEM_TO_ALL_(name, type, or) SHMEM_TO_ALL_(name, type, xor)
#define SHMEM_DECLARE_TO_ALL_ORDER_(name, type)                                                    \
    SHMEM_TO_ALL_(name, type, min) SHMEM_TO_ALL_(name, type, max)
#define SHMEM_DECLARE_TO_ALL_SUM_(name, type)                                                      \
    SHMEM_TO_ALL_(name, type, sum) SHMEM_TO_ALL_(name, type, prod)
SHMEM_TO_ALL_BITS_TYPES_(SHMEM_DECLARE_TO_ALL_BITS_)
SHMEM_TO_ALL_ORDER_TYPES_(SHMEM_DECLARE_TO_ALL_ORDER_)
SHMEM_TO_ALL_SUM_TYPES_(SHMEM_DECLARE_TO_ALL_SUM_)

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* SHMEM_COLLECTIVES_H */
