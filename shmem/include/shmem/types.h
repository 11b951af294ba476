/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file shmem/types.h
 * Constants, handles and the lists of types of shmem.h. A name that ends in an underscore is not
 * for programs.
 */
#ifndef SHMEM_TYPES_H
#define SHMEM_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define SHMEM_API_ __attribute__((visibility("default")))

/* ---- Constants (OpenSHMEM 1.6, 6) ---- */

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN 64
#define SHMEM_VENDOR_STRING "DiOMP"

#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

#define SHMEM_TEAM_NUM_CONTEXTS (1l << 0)
#define SHMEM_CTX_SERIALIZED (1l << 0)
#define SHMEM_CTX_PRIVATE (1l << 1)
#define SHMEM_CTX_NOSTORE (1l << 2)
#define SHMEM_CTX_SESSION_TOTAL_OPS (1l << 0)
#define SHMEM_CTX_SESSION_BATCH (1l << 0)
#define SHMEM_MALLOC_ATOMICS_REMOTE (1l << 0)
#define SHMEM_MALLOC_SIGNAL_REMOTE (1l << 1)
#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

/* Equal to ompx_cmp_t. */
#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_GE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_LE 5

/* Active sets need no memory of the program; their arguments pSync and pWrk are not used. */
#define SHMEM_SYNC_VALUE 0
#define SHMEM_SYNC_SIZE 1
#define SHMEM_BCAST_SYNC_SIZE 1
#define SHMEM_REDUCE_SYNC_SIZE 1
#define SHMEM_BARRIER_SYNC_SIZE 1
#define SHMEM_COLLECT_SYNC_SIZE 1
#define SHMEM_ALLTOALL_SYNC_SIZE 1
#define SHMEM_ALLTOALLS_SYNC_SIZE 1
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1

/* Deprecated names. */
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

/* ---- Handles ---- */

typedef struct shmem_ctx_handle_ *shmem_ctx_t;
#define SHMEM_CTX_INVALID ((shmem_ctx_t)(intptr_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)(intptr_t)1)

typedef struct shmem_team_handle_ *shmem_team_t;
#define SHMEM_TEAM_INVALID ((shmem_team_t)(intptr_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)(intptr_t)1)
#define SHMEM_TEAM_SHARED ((shmem_team_t)(intptr_t)2)

typedef struct shmem_team_config_t {
    int num_contexts;
} shmem_team_config_t;

typedef struct shmem_ctx_session_config_t {
    size_t total_ops;
} shmem_ctx_session_config_t;

/* ---- Lists of types: X(name, type) ---- */

/* Types that are distinct from each other, for generic forms. */
#define SHMEM_DISTINCT_TYPES_(X)                                                                   \
    X(float, float)                                                                                \
    X(double, double)                                                                              \
    X(longdouble, long double)                                                                     \
    X(char, char)                                                                                  \
    X(schar, signed char)                                                                          \
    X(short, short)                                                                                \
    X(int, int)                                                                                    \
    X(long, long)                                                                                  \
    X(longlong, long long)                                                                         \
    X(uchar, unsigned char)                                                                        \
    X(ushort, unsigned short)                                                                      \
    X(uint, unsigned int)                                                                          \
    X(ulong, unsigned long)                                                                        \
    X(ulonglong, unsigned long long)

#define SHMEM_RMA_TYPES_(X)                                                                        \
    SHMEM_DISTINCT_TYPES_(X)                                                                       \
    X(int8, int8_t)                                                                                \
    X(int16, int16_t)                                                                              \
    X(int32, int32_t)                                                                              \
    X(int64, int64_t)                                                                              \
    X(uint8, uint8_t)                                                                              \
    X(uint16, uint16_t)                                                                            \
    X(uint32, uint32_t)                                                                            \
    X(uint64, uint64_t)                                                                            \
    X(size, size_t)                                                                                \
    X(ptrdiff, ptrdiff_t)

/* X(suffix, bytes) */
#define SHMEM_SIZES_(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

#define SHMEM_DISTINCT_AMO_TYPES_(X)                                                               \
    X(int, int)                                                                                    \
    X(long, long)                                                                                  \
    X(longlong, long long)                                                                         \
    X(uint, unsigned int)                                                                          \
    X(ulong, unsigned long)                                                                        \
    X(ulonglong, unsigned long long)

#define SHMEM_AMO_TYPES_(X)                                                                        \
    SHMEM_DISTINCT_AMO_TYPES_(X)                                                                   \
    X(int32, int32_t)                                                                              \
    X(int64, int64_t)                                                                              \
    X(uint32, uint32_t)                                                                            \
    X(uint64, uint64_t)                                                                            \
    X(size, size_t)                                                                                \
    X(ptrdiff, ptrdiff_t)

#define SHMEM_FLOAT_AMO_TYPES_(X) X(float, float) X(double, double)
#define SHMEM_EXTENDED_AMO_TYPES_(X) SHMEM_AMO_TYPES_(X) SHMEM_FLOAT_AMO_TYPES_(X)

#define SHMEM_DISTINCT_BITWISE_TYPES_(X)                                                           \
    X(uint, unsigned int)                                                                          \
    X(ulong, unsigned long)                                                                        \
    X(ulonglong, unsigned long long)                                                               \
    X(int32, int32_t)                                                                              \
    X(int64, int64_t)
#define SHMEM_BITWISE_TYPES_(X)                                                                    \
    SHMEM_DISTINCT_BITWISE_TYPES_(X) X(uint32, uint32_t) X(uint64, uint64_t)

/* The deprecated atomics. */
#define SHMEM_OLD_AMO_TYPES_(X) X(int, int) X(long, long) X(longlong, long long)
#define SHMEM_OLD_EXTENDED_TYPES_(X) SHMEM_OLD_AMO_TYPES_(X) SHMEM_FLOAT_AMO_TYPES_(X)

#define SHMEM_DISTINCT_WAIT_TYPES_(X)                                                              \
    X(short, short)                                                                                \
    X(ushort, unsigned short)                                                                      \
    SHMEM_DISTINCT_AMO_TYPES_(X)
#define SHMEM_WAIT_TYPES_(X)                                                                       \
    X(short, short)                                                                                \
    X(ushort, unsigned short)                                                                      \
    SHMEM_AMO_TYPES_(X)
#define SHMEM_OLD_WAIT_TYPES_(X) X(short, short) SHMEM_OLD_AMO_TYPES_(X)

/* Reductions over teams: bitwise operators, minimum and maximum, sum and product. */
#define SHMEM_DISTINCT_REDUCE_BITS_TYPES_(X)                                                       \
    X(uchar, unsigned char)                                                                        \
    X(ushort, unsigned short)                                                                      \
    X(uint, unsigned int)                                                                          \
    X(ulong, unsigned long)                                                                        \
    X(ulonglong, unsigned long long)                                                               \
    X(int8, int8_t)                                                                                \
    X(int16, int16_t)                                                                              \
    X(int32, int32_t)                                                                              \
    X(int64, int64_t)
#define SHMEM_REDUCE_BITS_TYPES_(X)                                                                \
    SHMEM_DISTINCT_REDUCE_BITS_TYPES_(X)                                                           \
    X(uint8, uint8_t)                                                                              \
    X(uint16, uint16_t)                                                                            \
    X(uint32, uint32_t)                                                                            \
    X(uint64, uint64_t)                                                                            \
    X(size, size_t)
#define SHMEM_REDUCE_ORDER_TYPES_(X) SHMEM_RMA_TYPES_(X)
#define SHMEM_COMPLEX_TYPES_(X) X(complexf, float _Complex) X(complexd, double _Complex)
#define SHMEM_REDUCE_SUM_TYPES_(X) SHMEM_RMA_TYPES_(X) SHMEM_COMPLEX_TYPES_(X)

/* Reductions over active sets. */
#define SHMEM_TO_ALL_BITS_TYPES_(X) X(short, short) SHMEM_OLD_AMO_TYPES_(X)
#define SHMEM_TO_ALL_ORDER_TYPES_(X)                                                               \
    SHMEM_TO_ALL_BITS_TYPES_(X) SHMEM_FLOAT_AMO_TYPES_(X) X(longdouble, long double)
#define SHMEM_TO_ALL_SUM_TYPES_(X) SHMEM_TO_ALL_ORDER_TYPES_(X) SHMEM_COMPLEX_TYPES_(X)

#endif /* SHMEM_TYPES_H */
