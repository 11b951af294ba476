/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp.h
 * DiOMP: one OpenMP program, many ranks, one address space.
 *
 * Conventions that hold for every function unless its comment says otherwise:
 *  - The result is 0 (OMPX_SUCCESS) or a negative ompx_status. An error is printed with the rank,
 * the function, its arguments and a remedy, and ends the job; with DIOMP_ERRORS=return the code
 * comes back instead and ompx_last_error() holds the text.
 *  - Any thread may call any function at any time between start-up and ompx_finalize(). Functions
 * marked "collective" must be called once per member rank, by one thread, in the same order on
 * every member.
 *  - A `rank` is a world rank, 0 .. ompx_get_num_ranks() - 1. A `root` is a rank within the group.
 *  - Sizes are in bytes where the name says nbytes, in elements where it says count. Zero is valid
 * and transfers nothing.
 *  - A remote location is named by a pointer. It may be
 *      (1) an address in memory that this rank got from a symmetric allocator: it names the same
 * place in the memory of `rank`; (2) an address inside this rank's part of an asymmetric
 * allocation: the same byte offset in the part of `rank`; (3) an address in the memory of `rank`
 * itself, as `rank` sees it: local allocations, asymmetric parts (see ompx_global_ptr) and ranges
 * given to ompx_register(). The local side of a transfer may be any memory of the calling process.
 *
 * "DiOMP 2024" below is Shan, Araya-Polo, Chapman: DiOMP, a PGAS extension of LLVM/OpenMP.
 */
#ifndef DIOMP_H
#define DIOMP_H

#include <stddef.h>
#include <stdint.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

#define DIOMP_VERSION_MAJOR 0
#define DIOMP_VERSION_MINOR 1
#define DIOMP_VERSION_PATCH 0

#if defined(__cplusplus)
#define OMPX_NOEXCEPT_ noexcept
extern "C" {
#else
#define OMPX_NOEXCEPT_
#endif

#define OMPX_API_ __attribute__((visibility("default")))

/* ---- Status ---- */

/** Result codes. Values never change between versions. */
typedef enum ompx_status {
    OMPX_SUCCESS = 0,
    OMPX_ERR_ARG = -1,          /**< null pointer, unknown type or operator, size that overflows */
    OMPX_ERR_RANK = -2,         /**< rank or root outside its world or group */
    OMPX_ERR_ADDRESS = -3,      /**< address outside the global address space */
    OMPX_ERR_RANGE = -4,        /**< range runs past the end of its segment or allocation */
    OMPX_ERR_NOMEM = -5,        /**< segment (or system memory) exhausted */
    OMPX_ERR_MISMATCH = -6,     /**< ranks disagree about a collective call */
    OMPX_ERR_LOCK = -7,         /**< unlock of a lock not held, or lock taken twice */
    OMPX_ERR_STATE = -8,        /**< called before start-up or after ompx_finalize() */
    OMPX_ERR_TIMEOUT = -9,      /**< nothing happened for DIOMP_TIMEOUT */
    OMPX_ERR_PEER = -10,        /**< a rank that takes part has died */
    OMPX_ERR_SYSTEM = -11,      /**< the operating system refused something; the text says what */
    OMPX_ERR_UNSUPPORTED = -12, /**< not possible here; the text says why */
    OMPX_ERR_BUSY = -13         /**< try form: the lock is held. Never fatal, never printed. */
} ompx_status;

/** Text of a status code; never NULL. */
OMPX_API_ const char *ompx_status_string(int status) OMPX_NOEXCEPT_;
/** Text of the calling thread's last error, "" if none; valid until its next failing call. */
OMPX_API_ const char *ompx_last_error(void) OMPX_NOEXCEPT_;

/* ---- Ranks ---- */

/** Optional: a program linked with DiOMP starts by itself. Collective the first time, then free. */
OMPX_API_ int ompx_init(void) OMPX_NOEXCEPT_;
/**
 * Optional: done at normal exit. Collective; waits for all ranks, so that nobody's memory goes away
 * while another rank uses it. Every later call is an error (OMPX_ERR_STATE).
 *
 * OMPX_ERR_STATE as well if another thread of this rank is in a call: then nothing has happened,
 * and the function may be called again after that call. Calls that other threads make meanwhile
 * are errors of the same kind. At exit() neither is an error: there calls of other threads go on
 * until all ranks have come to their end, and do not return afterwards.
 */
OMPX_API_ int ompx_finalize(void) OMPX_NOEXCEPT_;
/** 1 between start-up and finalize, else 0. */
OMPX_API_ int ompx_is_initialized(void) OMPX_NOEXCEPT_;
/** This rank (0-based), or a negative status. */
OMPX_API_ int ompx_get_rank_num(void) OMPX_NOEXCEPT_;
/** Number of ranks, or a negative status. */
OMPX_API_ int ompx_get_num_ranks(void) OMPX_NOEXCEPT_;
/** This rank among the ranks of its node (0-based), and their number. */
OMPX_API_ int ompx_get_local_rank_num(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_num_local_ranks(void) OMPX_NOEXCEPT_;
/**
 * Writes into `text` (at most nbytes, the final 0 included; what is longer is cut) how transfers to
 * `rank` travel and why so: "shm", "ucx (tcp, active messages): ...". A network's path is chosen by
 * the first transfer; before that the text says so. Does not block, any thread.
 */
OMPX_API_ int ompx_path_info(int rank, char *text, size_t nbytes) OMPX_NOEXCEPT_;
/**
 * Ends the whole job at once with exit status `code & 255`, as exit() does: 0 ends it as a success
 * and prints nothing. Not collective; other ranks are ended wherever they are. Does not return.
 * diomp-run passes the status on; some other launchers replace it (docs/launch.md). Any thread.
 */
OMPX_API_ __attribute__((noreturn)) void ompx_abort(int code) OMPX_NOEXCEPT_;

/* ---- Memory ---- */

/*
 * Allocator handles for omp_alloc, omp_aligned_alloc, omp_calloc, omp_aligned_calloc, omp_realloc,
 * omp_free and `#pragma omp allocate`. OpenMP's own allocators keep working beside them.
 *
 * - symmetric: collective, same size on every rank; same offset in every segment, so one's own
 *   address names every rank's copy. Freeing and reallocating are collective too.
 * - asymmetric: collective, sizes may differ (0 included); each rank gets its own part. A 32-byte
 *   second-level pointer in symmetric memory lets the others find it (DiOMP 2024, unaligned global
 *   memory): first access two transfers, later ones one.
 * - local: by one rank alone; others reach it once they are given the address.
 *
 * omp_set_default_allocator takes them as well; omp_null_allocator then stands for one. C's free(),
 * delete and Fortran's deallocate do not know this memory and may end the program.
 *
 * Collective memory from omp_calloc and omp_aligned_calloc is zero on every rank, and what
 * omp_realloc keeps is copied on every rank, before the call returns on any: puts may follow at
 * once. Memory that the program fills itself needs a barrier between filling and the first put
 * (docs/tutorial.md, "When may I put, when may I read?").
 *
 * An allocation of 0 bytes gives a unique pointer that may be freed. Failure gives NULL (and an
 * error as above). Alignment is at least 64 bytes. omp_realloc on asymmetric memory is not
 * supported.
 */
#define OMPX_SYMMETRIC_MEM_ALLOC_VALUE_ 0x44690001ul
#define OMPX_ASYMMETRIC_MEM_ALLOC_VALUE_ 0x44690002ul
#define OMPX_LOCAL_MEM_ALLOC_VALUE_ 0x44690003ul
#if defined(_OPENMP)
#define ompx_symmetric_mem_alloc ((omp_allocator_handle_t)OMPX_SYMMETRIC_MEM_ALLOC_VALUE_)
#define ompx_asymmetric_mem_alloc ((omp_allocator_handle_t)OMPX_ASYMMETRIC_MEM_ALLOC_VALUE_)
#define ompx_local_mem_alloc ((omp_allocator_handle_t)OMPX_LOCAL_MEM_ALLOC_VALUE_)
#endif

typedef enum ompx_mem_kind {
    OMPX_MEM_NONE = 0, /**< not in the global address space */
    OMPX_MEM_SYMMETRIC = 1,
    OMPX_MEM_ASYMMETRIC = 2,
    OMPX_MEM_LOCAL = 3,
    OMPX_MEM_REGISTERED = 4
} ompx_mem_kind_t;

/** The same allocations without OpenMP in the compiler; `kind` is one of the first three above. */
OMPX_API_ void *ompx_alloc(size_t nbytes, size_t alignment, ompx_mem_kind_t kind) OMPX_NOEXCEPT_;
/** Frees memory of any of the three kinds; collective for symmetric and asymmetric memory. NULL is
 * allowed. */
OMPX_API_ int ompx_free(void *ptr) OMPX_NOEXCEPT_;

/**
 * Makes [ptr, ptr + nbytes), which the program already has, reachable for all ranks under the
 * address that it has here. Not collective. The range must stay valid until ompx_unregister(ptr).
 */
OMPX_API_ int ompx_register(void *ptr, size_t nbytes) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_unregister(void *ptr) OMPX_NOEXCEPT_;

/**
 * Address under which the calling rank can load and store `rank`'s counterpart of p directly, or
 * NULL if there is none (another node, private memory of another process, not a global address).
 * Never an error.
 */
OMPX_API_ void *ompx_remote_ptr(const void *p, int rank) OMPX_NOEXCEPT_;
/**
 * The counterpart of p as `rank` itself sees it; may be given to put and get for that rank, with
 * any offset inside its allocation. *nbytes (may be NULL) receives the bytes from there to the end
 * of the allocation. For asymmetric memory this reads the second-level pointer of `rank` (cached).
 * NULL on error.
 */
OMPX_API_ void *ompx_global_ptr(const void *p, int rank, size_t *nbytes) OMPX_NOEXCEPT_;

typedef struct ompx_addr_info_t {
    int rank; /**< owner, -1 if not a global address */
    ompx_mem_kind_t kind;
    void *base; /**< start of the allocation, as its owner sees it; NULL if not in an allocation */
    size_t nbytes; /**< size of the allocation */
    size_t offset; /**< of the address, from the start of the owner's segment */
} ompx_addr_info_t;
/** Describes an address. Memory that is not global gives rank -1, kind OMPX_MEM_NONE, and is no
 * error. */
OMPX_API_ int ompx_addr_info(const void *p, ompx_addr_info_t *info) OMPX_NOEXCEPT_;

typedef struct ompx_segment_info_t {
    void *base;            /**< of this rank's segment */
    size_t nbytes;         /**< reserved (DIOMP_SEGMENT_SIZE) */
    size_t symmetric_used; /**< bytes in symmetric allocations */
    size_t local_used;     /**< bytes in asymmetric and local allocations */
    size_t largest_free;   /**< largest single allocation that would succeed now */
    size_t resident;       /**< bytes of physical memory behind the segment */
    size_t num_allocations;
} ompx_segment_info_t;
OMPX_API_ int ompx_segment_info(ompx_segment_info_t *info) OMPX_NOEXCEPT_;

/* ---- One-sided transfers ---- */

/** Handle of a transfer or collective in flight. NULL: complete. */
typedef struct ompx_event *ompx_event_t;

/**
 * Copies nbytes from src (this process) to dst at `rank`. On return src may be reused; ompx_fence()
 * or an event completes the transfer at the target. An aligned 1, 2, 4 or 8 byte transfer is a
 * single access.
 */
OMPX_API_ int ompx_put(int rank, void *dst, const void *src, size_t nbytes) OMPX_NOEXCEPT_;
/** Copies nbytes from src at `rank` to dst (this process). Complete on return. */
OMPX_API_ int ompx_get(void *dst, int rank, const void *src, size_t nbytes) OMPX_NOEXCEPT_;

/** As put and get, but the local buffer belongs to the transfer until *event is complete. With a
 * null `event` the next ompx_fence() of this rank, or a call that includes one (ompx_barrier,
 * ompx_unlock), completes it, as OpenSHMEM 1.5 (9.6) has it for shmem_put_nbi and shmem_get_nbi. */
OMPX_API_ int ompx_put_nb(int rank, void *dst, const void *src, size_t nbytes,
                          ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_nb(void *dst, int rank, const void *src, size_t nbytes,
                          ompx_event_t *event) OMPX_NOEXCEPT_;
/** *done = 1 if complete; the event is then released and set to NULL. Makes progress, does not
 * block. */
OMPX_API_ int ompx_event_test(ompx_event_t *event, int *done) OMPX_NOEXCEPT_;
/** Blocks until the event is complete, releases it and sets it to NULL. Returns the transfer's
 * status. */
OMPX_API_ int ompx_event_wait(ompx_event_t *event) OMPX_NOEXCEPT_;

/*
 * Transfers within a node are complete on return as a rule: their events cost no call. Waits for
 * these are not counted by DIOMP_STATS and not seen by a library that puts itself between.
 * OMPX_NO_INLINE, defined before, leaves all to the library.
 */
/* NOLINTBEGIN(readability-identifier-naming,modernize-use-nullptr) */
OMPX_API_ int ompx_event_test_started_(ompx_event_t *event, int *done) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_event_wait_started_(ompx_event_t *event) OMPX_NOEXCEPT_;
#if !defined(OMPX_NO_INLINE)
#define OMPX_IN_LINE_ extern __inline__ __attribute__((gnu_inline))
OMPX_IN_LINE_ int ompx_event_test(ompx_event_t *event, int *done) OMPX_NOEXCEPT_ {
    if (event == NULL || *event != NULL || done == NULL) {
        return ompx_event_test_started_(event, done);
    }
    __atomic_thread_fence(__ATOMIC_RELEASE); /* what follows is seen after the transfer's bytes */
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

/** Copies an n-dimensional box; argument form of omp_target_memcpy_rect (OpenMP 5.2, 18.8.7).
 *  volume, offsets and dimensions are in elements, slowest dimension first. */
OMPX_API_ int ompx_put_rect(int rank, void *dst, const void *src, size_t element_size, int num_dims,
                            const size_t *volume, const size_t *dst_offsets,
                            const size_t *src_offsets, const size_t *dst_dimensions,
                            const size_t *src_dimensions) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_rect(void *dst, int rank, const void *src, size_t element_size, int num_dims,
                            const size_t *volume, const size_t *dst_offsets,
                            const size_t *src_offsets, const size_t *dst_dimensions,
                            const size_t *src_dimensions) OMPX_NOEXCEPT_;

/* gcc has detach events since 11, though it announces OpenMP 4.5. */
#if defined(_OPENMP) && (_OPENMP >= 201811 || defined(__clang__) || __GNUC__ >= 11)
/** As put_nb and get_nb; completion fulfils the detach event of an OpenMP task
 * (OpenMP 5.0, 2.10.1). */
OMPX_API_ int ompx_put_detach(int rank, void *dst, const void *src, size_t nbytes,
                              omp_event_handle_t event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_detach(void *dst, int rank, const void *src, size_t nbytes,
                              omp_event_handle_t event) OMPX_NOEXCEPT_;
/**
 * Gives a transfer or collective in flight to an OpenMP task: its completion fulfils the detach
 * event, and *event becomes NULL. So every _nb form can be a task with `depend`. An error in the
 * operation has nobody to be told to and ends the job. Does not block.
 */
OMPX_API_ int ompx_event_detach(ompx_event_t *event, omp_event_handle_t task) OMPX_NOEXCEPT_;
#endif

typedef enum ompx_signal_op { OMPX_SIGNAL_SET = 0, OMPX_SIGNAL_ADD = 1 } ompx_signal_op_t;
typedef enum ompx_cmp {
    OMPX_CMP_EQ = 0,
    OMPX_CMP_NE = 1,
    OMPX_CMP_GT = 2,
    OMPX_CMP_GE = 3,
    OMPX_CMP_LT = 4,
    OMPX_CMP_LE = 5
} ompx_cmp_t;

/** Put, then update *signal at `rank` (8-byte aligned); who sees the signal sees the data
 * (OpenSHMEM 1.5, 9.8). */
OMPX_API_ int ompx_put_signal(int rank, void *dst, const void *src, size_t nbytes, uint64_t *signal,
                              uint64_t value, ompx_signal_op_t op) OMPX_NOEXCEPT_;
/** Blocks until the local *signal compares true with value. */
OMPX_API_ int ompx_signal_wait(const uint64_t *signal, ompx_cmp_t cmp,
                               uint64_t value) OMPX_NOEXCEPT_;

/* ---- Types, operators, atomics ---- */

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
    OMPX_BOOL = 16
};
/** An element of n bytes (1 .. 65535) without arithmetic, for user-defined operators. */
#define OMPX_TYPE_OF_SIZE(n) ((ompx_type_t)(0x10000 + (n)))
/** Bytes of one element, 0 for an unknown type. */
OMPX_API_ size_t ompx_type_size(ompx_type_t type) OMPX_NOEXCEPT_;

/**
 * Operators of reductions and atomics.
 *
 * OMPX_MIN and OMPX_MAX of floating types are minimum and maximum of IEEE 754-2019, 9.6: if an
 * operand is a NaN, so is the result, and -0 is less than 0. The NaN is the quiet one without sign
 * and payload, so the result's bits depend neither on the order of the operands nor on where they
 * are combined: ranks, devices, atomics. One operand alone is copied as it is.
 *
 * All members get the same bits from a reduction, but for the padding of long double. Those of
 * floating sums and products may differ between numbers of members, nodes or elements; of several
 * NaNs they have the payload that the processor chooses, so members on nodes with processors of
 * different kinds may get different ones.
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
    OMPX_NO_OP = 11    /**< atomics only: fetch, change nothing */
};
/** inout[i] = inout[i] op in[i] for i < count; called on any thread, must not call DiOMP. */
typedef void (*ompx_op_function_t)(void *inout, const void *in, size_t count, ompx_type_t type,
                                   void *context);
/** A user-defined operator for reductions. Not collective, but every member must pass an equivalent
 * one. The order of operands is that of the ranks; with commutative != 0 the library may reorder,
 * in one way for all members of a call.
 */
OMPX_API_ int ompx_op_create(ompx_op_t *op, ompx_op_function_t function, void *context,
                             int commutative) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_op_free(ompx_op_t *op) OMPX_NOEXCEPT_;

/**
 * Atomically: *result = *target; *target = *target op *operand, at `rank`. result may be NULL (then
 * the call need not wait). Types: INT32, UINT32, INT64, UINT64, FLOAT, DOUBLE; operators SUM, MIN,
 * MAX, BAND, BOR, BXOR (integers), REPLACE, NO_OP. target is aligned to its size. Atomic against
 * every other ompx_atomic and put_signal, from any thread of any rank.
 */
OMPX_API_ int ompx_atomic_fetch(int rank, void *target, const void *operand, void *result,
                                ompx_type_t type, ompx_op_t op) OMPX_NOEXCEPT_;
/** Atomically: *result = *target; if it equals *expected (bitwise), *target = *desired. result may
 * be NULL. */
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
/** Store the operand, return the old value. */
static inline int ompx_atomic_swap(int rank, void *target, const void *operand, void *result,
                                   ompx_type_t type) OMPX_NOEXCEPT_ {
    return ompx_atomic_fetch(rank, target, operand, result, type, OMPX_REPLACE);
}

/** Blocks until the local *variable (a 32 or 64 bit integer type) compares true with *value. */
OMPX_API_ int ompx_wait_until(const void *variable, ompx_type_t type, ompx_cmp_t cmp,
                              const void *value) OMPX_NOEXCEPT_;

#include "diomp/group.h"

/* ---- Completion and synchronisation ---- */

/**
 * Returns when all transfers that this rank has started are complete and visible at their targets;
 * with a group, those to its members. Blocks. Does not synchronise ranks.
 */
OMPX_API_ int ompx_fence(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_fence_group(ompx_group_t group) OMPX_NOEXCEPT_;

enum { OMPX_RMA_PUT = 1, OMPX_RMA_GET = 2, OMPX_RMA_ATOMIC = 4, OMPX_RMA_ALL = 7 };
/** Waits for this rank's transfers of the given kinds (bits above) (DiOMP 2024, ompx_waitRMA). */
OMPX_API_ int ompx_waitRMA(int kind) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_waitALLRMA(void) OMPX_NOEXCEPT_;

/** Collective. Returns when every member has entered; includes a fence. Without _group, too:
 * ompx_barrier(group), ompx_fence(group). */
OMPX_API_ int ompx_barrier(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_barrier_group(ompx_group_t group) OMPX_NOEXCEPT_;

/**
 * The lock that lives at `rank`, held by a rank (DiOMP 2024, fig. 2). Blocks until granted: a free
 * lock is taken at once, without a message by ranks of the same node; those who wait for one are
 * granted it first come, first served by the target. Acquire and release order memory; unlock
 * includes a fence. Any thread. Errors: OMPX_ERR_LOCK if this rank holds it already, or unlocks
 * what it does not hold.
 */
OMPX_API_ int ompx_lock(int rank) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_unlock(int rank) OMPX_NOEXCEPT_;
/** 0 if taken, OMPX_ERR_BUSY if somebody has it. */
OMPX_API_ int ompx_try_lock(int rank) OMPX_NOEXCEPT_;
/** The same lock space for threads: excludes all other threads of all ranks. A lock of its own,
 * besides ompx_lock's. */
OMPX_API_ int ompx_lockt(int rank) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_unlockt(int rank) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_try_lockt(int rank) OMPX_NOEXCEPT_;

#include "diomp/collective.h"
#include "diomp/target.h"
#include "diomp/target_collective.h"

#if defined(__cplusplus)
} /* extern "C" */
inline int ompx_fence(ompx_group_t group) noexcept { return ompx_fence_group(group); }
inline int ompx_barrier(ompx_group_t group) noexcept { return ompx_barrier_group(group); }
#else
/* ompx_barrier() and ompx_barrier(group), as the papers write it. */
#define OMPX_GROUP_OR_WORLD_(...) (((ompx_group_t[2]){NULL, __VA_ARGS__})[1])
#define ompx_fence(...) ompx_fence_group(OMPX_GROUP_OR_WORLD_(__VA_ARGS__))
#define ompx_barrier(...) ompx_barrier_group(OMPX_GROUP_OR_WORLD_(__VA_ARGS__))
#endif

#if defined(DIOMP_COMPAT)
#include "diomp_compat.h"
#endif

#endif /* DIOMP_H */
