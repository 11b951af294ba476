/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp.h
 * DiOMP: one OpenMP program, many ranks, one address space.
 *
 * Conventions for all functions, unless the comment of a function differs:
 *  - Functions return 0 (OMPX_SUCCESS) or a negative ompx_status. An error is printed with the
 *    rank, the function, its arguments and a remedy, and ends the job; with DIOMP_ERRORS=return the
 *    function returns the code and ompx_last_error() returns the text.
 *  - Errors that are not repeated for each function: OMPX_ERR_ARG (null pointer, size that
 *    overflows, unknown constant), OMPX_ERR_RANK, OMPX_ERR_STATE; OMPX_ERR_ADDRESS and
 *    OMPX_ERR_RANGE from transfers; OMPX_ERR_MISMATCH from collectives; OMPX_ERR_TIMEOUT and
 *    OMPX_ERR_PEER from functions that block.
 *  - Any thread may call any function between start-up and ompx_finalize(). A "collective" function
 *    must be called once per member rank, by one thread, in the same order on all members. It
 *    blocks unless its name ends in _nb.
 *  - A `rank` is a world rank, 0 .. ompx_num_ranks() - 1. A `root` is a rank within the group.
 *  - `nbytes` is a size in bytes, `count` a number of elements. Zero is valid and transfers
 *    nothing.
 *  - A remote location is named by a pointer, one of
 *    (1) an address in this rank's symmetric memory: the same location in the memory of `rank`;
 *    (2) an address in this rank's block of an asymmetric allocation: the same byte offset in the
 *    block of `rank`;
 *    (3) an address in the memory of `rank`, as `rank` sees it: local allocations, blocks of
 *    asymmetric allocations (see ompx_global_ptr) and ranges passed to ompx_register().
 *  - The local side of a transfer may be any memory of the calling process.
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

#define DIOMP_VERSION_MAJOR 1
#define DIOMP_VERSION_MINOR 0
#define DIOMP_VERSION_PATCH 0

#if defined(__cplusplus)
#define OMPX_NOEXCEPT_ noexcept
extern "C" {
#else
#define OMPX_NOEXCEPT_
#endif

#define OMPX_API_ __attribute__((visibility("default")))

/* ---- Status ---- */

#include "diomp/status.h"
#include "diomp/types.h"

/** Text of a status code; never NULL. Also valid without a runtime. */
OMPX_API_ const char *ompx_status_string(int status) OMPX_NOEXCEPT_;
/** Text of the calling thread's last error, "" if none; valid until the thread's next error. */
OMPX_API_ const char *ompx_last_error(void) OMPX_NOEXCEPT_;

/* ---- Ranks ---- */

/** Starts the runtime. Optional: a program linked with DiOMP starts it before main. The first call
 * is collective; later calls return at once. */
OMPX_API_ int ompx_init(void) OMPX_NOEXCEPT_;
/**
 * Ends the runtime. Optional: done at normal exit. Collective; waits for all ranks, so that the
 * memory of a rank stays valid while other ranks use it. Later calls return OMPX_ERR_STATE.
 *
 * Returns OMPX_ERR_STATE without any effect if another thread of this rank is in a call; the
 * function may be called again after that call. Calls that other threads make meanwhile return
 * OMPX_ERR_STATE. At exit() neither is an error: calls of other threads work until all ranks have
 * reached their end, and do not return afterwards.
 */
OMPX_API_ int ompx_finalize(void) OMPX_NOEXCEPT_;
/** 1 between start-up and finalize, otherwise 0. Never an error. */
OMPX_API_ int ompx_is_initialized(void) OMPX_NOEXCEPT_;
/** This rank (0-based), or a negative status. */
OMPX_API_ int ompx_rank_num(void) OMPX_NOEXCEPT_;
/** Number of ranks, or a negative status. */
OMPX_API_ int ompx_num_ranks(void) OMPX_NOEXCEPT_;
/** This rank among the ranks of its node (0-based), and their number. */
OMPX_API_ int ompx_local_rank_num(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_num_local_ranks(void) OMPX_NOEXCEPT_;
/** Earlier names of the four functions above; `get` is the word for RMA. They stay. */
OMPX_API_ int ompx_get_rank_num(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_num_ranks(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_local_rank_num(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_num_local_ranks(void) OMPX_NOEXCEPT_;
/**
 * Writes the path of transfers to `rank` and the reason for it into `text`: "shm", "ucx (tcp,
 * active messages): ...". Writes at most nbytes including the final 0; a longer text is truncated.
 * The first transfer chooses a network's path; before that, the text says so. Does not block.
 */
OMPX_API_ int ompx_path_info(int rank, char *text, size_t nbytes) OMPX_NOEXCEPT_;
/**
 * Ends the whole job at once with exit status `code & 255`; 0 ends it successfully and prints
 * nothing. Not collective; terminates all other ranks. Does not return. diomp-run passes the status
 * on; some other launchers replace it (docs/launch.md).
 */
OMPX_API_ __attribute__((noreturn)) void ompx_abort(int code) OMPX_NOEXCEPT_;

/* ---- Memory ---- */

/*
 * Allocator handles for omp_alloc, omp_aligned_alloc, omp_calloc, omp_aligned_calloc, omp_realloc,
 * omp_free and `#pragma omp allocate`. OpenMP's own allocators remain usable.
 *
 * - symmetric: collective, equal size on all ranks; equal offset in all segments, so a rank's own
 *   address names the counterparts on all ranks. Freeing and reallocating are collective too.
 * - asymmetric: collective, sizes may differ (including 0); each rank gets its own block. Other
 *   ranks find it by a 32-byte second-level pointer in symmetric memory (DiOMP 2024, unaligned
 *   global memory): the first access takes two transfers, later ones one.
 * - local: not collective; other ranks can access it once they have the address.
 *
 * The handles are valid for omp_set_default_allocator; omp_null_allocator then means that handle.
 * Do not pass this memory to C's free(), delete or Fortran's deallocate: they may end the program.
 *
 * Collective memory of omp_calloc and omp_aligned_calloc is zero on all ranks, and the contents
 * that omp_realloc keeps are copied on all ranks, before the call returns on any rank: puts may
 * follow at once. Memory that the program initialises itself needs a barrier between the
 * initialisation and the first put (docs/tutorial.md, "When may I put, when may I read?").
 *
 * An allocation of 0 bytes returns a unique pointer that may be freed. On failure the result is
 * NULL (with an error, see above). Alignment is at least 64 bytes. omp_realloc on asymmetric memory
 * is not supported (OMPX_ERR_UNSUPPORTED).
 */
#define OMPX_SYMMETRIC_MEM_ALLOC_VALUE_ 0x44690001ul
#define OMPX_ASYMMETRIC_MEM_ALLOC_VALUE_ 0x44690002ul
#define OMPX_LOCAL_MEM_ALLOC_VALUE_ 0x44690003ul
#if defined(_OPENMP)
#define ompx_symmetric_mem_alloc ((omp_allocator_handle_t)OMPX_SYMMETRIC_MEM_ALLOC_VALUE_)
#define ompx_asymmetric_mem_alloc ((omp_allocator_handle_t)OMPX_ASYMMETRIC_MEM_ALLOC_VALUE_)
#define ompx_local_mem_alloc ((omp_allocator_handle_t)OMPX_LOCAL_MEM_ALLOC_VALUE_)
#endif

/**
 * Allocates nbytes of global memory, for compilers without OpenMP. `kind` is symmetric, asymmetric
 * (both collective) or local. `alignment` is in bytes, 0 or a power of two. NULL on an error
 * (OMPX_ERR_NOMEM: on all ranks of a collective allocation).
 */
OMPX_API_ void *ompx_alloc(size_t nbytes, size_t alignment, ompx_mem_kind_t kind) OMPX_NOEXCEPT_;
/** Frees memory of these three kinds; collective for symmetric and asymmetric memory. NULL is
 * allowed. OMPX_ERR_ADDRESS if no allocation starts at ptr. */
OMPX_API_ int ompx_free(void *ptr) OMPX_NOEXCEPT_;

/**
 * Makes the memory [ptr, ptr + nbytes) of the program accessible to all ranks under its local
 * address. Not collective. The range must stay valid until ompx_unregister(ptr). OMPX_ERR_ADDRESS
 * if the range is in a segment or overlaps a registered range.
 */
OMPX_API_ int ompx_register(void *ptr, size_t nbytes) OMPX_NOEXCEPT_;
/** Ends the registration of the range that starts at ptr. Not collective. OMPX_ERR_ADDRESS if no
 * registered range starts there. */
OMPX_API_ int ompx_unregister(void *ptr) OMPX_NOEXCEPT_;

/**
 * Address at which the calling rank can load and store the counterpart of p at `rank`. NULL if
 * there is none (other node, private memory of another process, not a global address); never an
 * error.
 */
OMPX_API_ void *ompx_remote_ptr(const void *p, int rank) OMPX_NOEXCEPT_;
/**
 * The address of the counterpart of p, as `rank` sees it. It may be passed to put and get for that
 * rank, plus any offset inside the allocation. *nbytes (may be NULL) receives the number of bytes
 * from there to the end of the allocation. For asymmetric memory this reads the second-level
 * pointer of `rank` (then cached) and may block. NULL on an error.
 */
OMPX_API_ void *ompx_global_ptr(const void *p, int rank, size_t *nbytes) OMPX_NOEXCEPT_;

/** Describes an address. Memory that is not global gives rank -1 and OMPX_MEM_NONE, without an
 * error. Does not block. */
OMPX_API_ int ompx_addr_info(const void *p, ompx_addr_info_t *info) OMPX_NOEXCEPT_;

/** Describes this rank's segment. Does not block. */
OMPX_API_ int ompx_segment_info(ompx_segment_info_t *info) OMPX_NOEXCEPT_;

/* ---- One-sided transfers ---- */

/**
 * Copies nbytes from src (this process) to dst at `rank`. Returns when src may be reused; the
 * transfer is complete at the target after ompx_fence(). An aligned transfer of 1, 2, 4 or 8 bytes
 * is a single access.
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
#if !defined(OMPX_NO_INLINE) && !defined(__NVPTX__) && !defined(__AMDGCN__)
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
/** Blocks until `*signal cmp value` holds for the local *signal. */
OMPX_API_ int ompx_signal_wait(const uint64_t *signal, ompx_cmp_t cmp,
                               uint64_t value) OMPX_NOEXCEPT_;

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

#include "diomp/group.h"
#include "diomp/nonblocking.h"
#include "diomp/wait.h"

/* ---- Completion and synchronisation ---- */

/**
 * Blocks until all transfers that this rank has started are complete and visible at their targets;
 * with a group, until those to its members are. Does not synchronise ranks.
 */
OMPX_API_ int ompx_fence(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_fence_group(ompx_group_t group) OMPX_NOEXCEPT_;

enum { OMPX_RMA_PUT = 1, OMPX_RMA_GET = 2, OMPX_RMA_ATOMIC = 4, OMPX_RMA_ALL = 7 };
/** Blocks until this rank's transfers of the given kinds (bits above) are complete (DiOMP 2024,
 * ompx_waitRMA). */
OMPX_API_ int ompx_waitRMA(int kind) OMPX_NOEXCEPT_;
/** Blocks until all of this rank's transfers are complete. */
OMPX_API_ int ompx_waitALLRMA(void) OMPX_NOEXCEPT_;

/** Collective. Blocks until all members have called it; includes a fence. ompx_barrier(group) and
 * ompx_fence(group) are valid too. */
OMPX_API_ int ompx_barrier(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_barrier_group(ompx_group_t group) OMPX_NOEXCEPT_;

/**
 * Acquires or releases the lock at `rank` for the calling rank (DiOMP 2024, fig. 2). Locking blocks
 * until the lock is granted. A free lock is granted at once, to ranks of the same node without a
 * message; waiting ranks are granted it in the order of their requests. Acquire and release order
 * memory; unlock includes a fence. OMPX_ERR_LOCK if this rank holds the lock already, or unlocks a
 * lock that it does not hold.
 */
OMPX_API_ int ompx_lock(int rank) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_unlock(int rank) OMPX_NOEXCEPT_;
/** Acquires the lock if it is free, otherwise returns OMPX_ERR_BUSY at once. */
OMPX_API_ int ompx_try_lock(int rank) OMPX_NOEXCEPT_;
/** Locks for threads: each excludes all other threads of all ranks. They are independent of the
 * locks of ompx_lock(). */
OMPX_API_ int ompx_lockt(int rank) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_unlockt(int rank) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_try_lockt(int rank) OMPX_NOEXCEPT_;

#include "diomp/cart.h"
#include "diomp/channel.h"
#include "diomp/collective.h"
#include "diomp/device.h"
#include "diomp/lock.h"
#include "diomp/target.h"
#include "diomp/target_collective.h"

#if defined(__cplusplus)
} /* extern "C" */
inline int ompx_fence(ompx_group_t group) noexcept { return ompx_fence_group(group); }
inline int ompx_barrier(ompx_group_t group) noexcept { return ompx_barrier_group(group); }
#else
/* ompx_barrier() and ompx_barrier(group), the forms in the papers. */
#define OMPX_GROUP_OR_WORLD_(...) (((ompx_group_t[2]){NULL, __VA_ARGS__})[1])
#define ompx_fence(...) ompx_fence_group(OMPX_GROUP_OR_WORLD_(__VA_ARGS__))
#define ompx_barrier(...) ompx_barrier_group(OMPX_GROUP_OR_WORLD_(__VA_ARGS__))
#endif

#if defined(DIOMP_COMPAT)
#include "diomp_compat.h"
#endif

#endif /* DIOMP_H */
