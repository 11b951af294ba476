/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/types.h
 * Handles, constants and structures that the functions of diomp.h use. Needs no other header of
 * DiOMP.
 */
#ifndef DIOMP_TYPES_H
#define DIOMP_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

/* clang compiles for a GPU. Tests have the same code compiled for a processor. */
#if defined(__NVPTX__) || defined(__AMDGCN__) || defined(DIOMP_TEST_AS_GPU)
#define DIOMP_FOR_GPU_ 1
#endif

#if defined(__cplusplus)
#define OMPX_NOEXCEPT_ noexcept
#else
#define OMPX_NOEXCEPT_
#endif

#define OMPX_API_ __attribute__((visibility("default")))

/* ---- Types ---- */

/** Handle of a transfer or collective in flight. NULL: complete. */
typedef struct ompx_event *ompx_event_t;

/** A set of operations that are completed apart from all others (ompx_context_create). */
typedef struct ompx_context *ompx_context_t;

/**
 * An ordered set of members: ranks, or endpoints, which are devices of ranks. NULL is the world of
 * ranks. Members are numbered from 0 in the group's order. A rank with several endpoints in a group
 * takes part in collectives on devices once per endpoint, but in barriers, fences and the creation
 * and freeing of groups once.
 */
typedef struct ompx_group *ompx_group_t;
#define ompx_group_world ((ompx_group_t)NULL)
/** No group: the result for a rank that is not a member. An error in every call but merge. */
#define OMPX_GROUP_NONE ((ompx_group_t)(intptr_t)-1)
/** ompx_group_translate(): the member is not in the other group. */
#define OMPX_NO_MEMBER (-1)
/** Index for "none". */
#define OMPX_NO_INDEX ((size_t)-1)
/** Collectives on devices: all of the caller's endpoints in the group. */
#define OMPX_GROUP_DEVICES (-2)

/** A device of a rank. `device` is OpenMP's device number at that rank; -1 is its host. */
typedef struct ompx_endpoint_t {
    int rank; /**< world rank */
    int device;
} ompx_endpoint_t;

/** What an error does (ompx_set_errors). */
typedef enum ompx_errors {
    OMPX_ERRORS_ABORT = 0,  /**< is printed and ends the job */
    OMPX_ERRORS_RETURN = 1, /**< is returned: a negative status, NULL from allocations */
    OMPX_ERRORS_INHERIT = 2 /**< of a thread: as for the library */
} ompx_errors_t;
typedef enum ompx_scope { OMPX_SCOPE_THREAD = 0, OMPX_SCOPE_LIBRARY = 1 } ompx_scope_t;
/** One end of a channel. NULL is none. One thread at a time uses an end; several threads may use
 * several ends. */
typedef struct ompx_channel *ompx_channel_t;
#define OMPX_CHANNEL_NONE ((ompx_channel_t)NULL)

typedef enum ompx_channel_end {
    OMPX_CHANNEL_SENDER = 0,  /**< this rank sends to the partner */
    OMPX_CHANNEL_RECEIVER = 1 /**< this rank receives from the partner */
} ompx_channel_end_t;

/** Upper limit of a channel's depth. */
#define OMPX_CHANNEL_MAX_DEPTH (1 << 20)

/** Target regions and updates that are launched again (ompx_plan_begin). NULL is none. Any thread.
 */
typedef struct ompx_plan *ompx_plan_t;
#define OMPX_PLAN_NONE ((ompx_plan_t)NULL)

/** A grid of ranks in which this rank has a position. NULL is none. */
typedef struct ompx_cart *ompx_cart_t;
#define OMPX_CART_NONE ((ompx_cart_t)NULL)
/** No neighbour: beyond the edge of a dimension that is not periodic. */
#define OMPX_NO_RANK (-1)
/** Upper limit of the dimensions of a grid. */
#define OMPX_CART_MAX_DIMS 32

typedef enum ompx_mem_kind {
    OMPX_MEM_NONE = 0, /**< not in the global address space */
    OMPX_MEM_SYMMETRIC = 1,
    OMPX_MEM_ASYMMETRIC = 2,
    OMPX_MEM_LOCAL = 3,
    OMPX_MEM_REGISTERED = 4
} ompx_mem_kind_t;

/** What ompx_addr_info() says about an address. */
typedef struct ompx_addr_info_t {
    int rank; /**< owner, -1 if not a global address */
    ompx_mem_kind_t kind;
    void *base; /**< start of the allocation, as its owner sees it; NULL if not in an allocation */
    size_t nbytes; /**< size of the allocation */
    size_t offset; /**< of the address, from the start of the owner's segment */
} ompx_addr_info_t;

/** What ompx_segment_info() says about the own segment. */
typedef struct ompx_segment_info_t {
    void *base;            /**< start of this rank's segment */
    size_t nbytes;         /**< reserved (DIOMP_SEGMENT_SIZE) */
    size_t symmetric_used; /**< bytes in symmetric allocations */
    size_t local_used;     /**< bytes in asymmetric and local allocations */
    size_t largest_free;   /**< largest single allocation that would succeed now */
    size_t resident;       /**< bytes of physical memory in use by the segment */
    size_t num_allocations;
} ompx_segment_info_t;

typedef enum ompx_signal_op { OMPX_SIGNAL_SET = 0, OMPX_SIGNAL_ADD = 1 } ompx_signal_op_t;
typedef enum ompx_cmp {
    OMPX_CMP_EQ = 0,
    OMPX_CMP_NE = 1,
    OMPX_CMP_GT = 2,
    OMPX_CMP_GE = 3,
    OMPX_CMP_LT = 4,
    OMPX_CMP_LE = 5
} ompx_cmp_t;

typedef int32_t ompx_type_t;
enum {
    OMPX_INT8 = 1,
    OMPX_UINT8 = 2,
    OMPX_INT16 = 3,
    OMPX_UINT16 = 4,
    OMPX_INT32 = 5,
    OMPX_UINT32 = 6,
    OMPX_INT64 = 7,
    OMPX_UINT64 = 8,
    OMPX_FLOAT16 = 9,
    OMPX_BFLOAT16 = 10,
    OMPX_FLOAT = 11,
    OMPX_DOUBLE = 12,
    OMPX_LONG_DOUBLE = 13,
    OMPX_FLOAT_COMPLEX = 14,
    OMPX_DOUBLE_COMPLEX = 15,
    OMPX_BOOL = 16,
    /* pairs of a value and an index, for OMPX_MINLOC and OMPX_MAXLOC only */
    OMPX_FLOAT_INT = 17,       /**< ompx_float_int_t */
    OMPX_DOUBLE_INT = 18,      /**< ompx_double_int_t */
    OMPX_LONG_INT = 19,        /**< ompx_long_int_t */
    OMPX_2INT = 20,            /**< ompx_2int_t, or int32_t[2] */
    OMPX_SHORT_INT = 21,       /**< ompx_short_int_t */
    OMPX_LONG_DOUBLE_INT = 22, /**< ompx_long_double_int_t */
    OMPX_2FLOAT = 23,          /**< float[2] */
    OMPX_2DOUBLE = 24,         /**< double[2] */
    OMPX_2INT64 = 25,          /**< ompx_2int64_t, or int64_t[2] */
    OMPX_DOUBLE_INT64 = 26     /**< ompx_double_int64_t */
};
/** Type of an element of n bytes (1 .. 65535), for user-defined operators. */
#define OMPX_TYPE_OF_SIZE(n) ((ompx_type_t)(0x10000 + (n)))

/* Elements of the types of pairs, which are laid out as those of MPI_FLOAT_INT and its siblings
 * (MPI 4.0, 6.9.4). The bytes between value and index, and after the index, are undefined in
 * results. */
typedef struct ompx_float_int_t {
    float value;
    int32_t index;
} ompx_float_int_t;
typedef struct ompx_double_int_t {
    double value;
    int32_t index;
} ompx_double_int_t;
typedef struct ompx_long_int_t {
    int64_t value;
    int32_t index;
} ompx_long_int_t;
typedef struct ompx_2int_t {
    int32_t value;
    int32_t index;
} ompx_2int_t;
typedef struct ompx_short_int_t {
    int16_t value;
    int32_t index;
} ompx_short_int_t;
typedef struct ompx_long_double_int_t {
    long double value;
    int32_t index;
} ompx_long_double_int_t;
typedef struct ompx_2int64_t {
    int64_t value;
    int64_t index;
} ompx_2int64_t;
typedef struct ompx_double_int64_t {
    double value;
    int64_t index;
} ompx_double_int64_t;

/**
 * Operators of reductions and atomics.
 *
 * OMPX_MIN and OMPX_MAX of floating types are minimum and maximum of IEEE 754-2019, 9.6: if an
 * operand is a NaN, so is the result, and -0 is less than 0. The NaN is the quiet NaN without sign
 * and payload, so the bits of the result depend neither on the order of the operands nor on where
 * they are combined (ranks, devices, atomics). A single operand is copied unchanged.
 *
 * OMPX_AVG is the sum in the type of the elements, then divided by the number of members, of
 * integers toward zero. So the sum must be a value of the type: one of integers wraps, one of
 * OMPX_FLOAT16 becomes infinite beyond 65504. Where that may happen, average elements of a wider
 * type.
 *
 * OMPX_MINLOC and OMPX_MAXLOC combine pairs of a value and an index, in collectives. The value is
 * that of OMPX_MIN or OMPX_MAX, the index the lowest of those operands that have this value: -0
 * and 0 are different values, all NaNs the same one. As MPI_MINLOC and MPI_MAXLOC (MPI 4.0, 6.9.4),
 * which leave NaNs undefined.
 *
 * A reduction gives all members the same bits, except in the padding of long double and of pairs.
 * The bits of
 * floating-point sums and products may depend on the number of members, nodes or elements. If there
 * are several NaNs, the processor chooses the payload, so that members on nodes with different
 * processors may get different payloads.
 */
typedef int32_t ompx_op_t;
enum {
    OMPX_SUM = 1,
    OMPX_PROD = 2,
    OMPX_MIN = 3, /**< NaN if any operand is; -0 < 0 */
    OMPX_MAX = 4, /**< NaN if any operand is; -0 < 0 */
    OMPX_BAND = 5,
    OMPX_BOR = 6,
    OMPX_BXOR = 7,
    OMPX_LAND = 8,
    OMPX_LOR = 9,
    OMPX_AVG = 12,     /**< collectives only: the sum divided by the number of members */
    OMPX_REPLACE = 10, /**< atomics only: store the operand (swap) */
    OMPX_NO_OP = 11,   /**< atomics only: fetch, change nothing */
    OMPX_MINLOC = 13,  /**< collectives only: the least value and its lowest index */
    OMPX_MAXLOC = 14   /**< collectives only: the greatest value and its lowest index */
};
/** Computes inout[i] = inout[i] op in[i] for i < count. Called on any thread; must not call
 * DiOMP. */
typedef void (*ompx_op_function_t)(void *inout, const void *in, size_t count, ompx_type_t type,
                                   void *context);

#endif /* DIOMP_TYPES_H */
