/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp_compat.h
 * Names of earlier DiOMP versions, implemented by diomp.h: an old program compiles with
 * `#include <diomp_compat.h>` instead of its <diomp.h>. New programs should use diomp.h.
 *
 * Sources. [2024] Shan, Araya-Polo, Chapman: Towards a Scalable and Efficient PGAS-based
 * Distributed OpenMP (arXiv 2409.02830): host memory. [2025] the same: DiOMP-Offloading
 * (arXiv 2506.02486): adds devices and groups. The marks below are the generation of the published
 * runtime that has the name. Unchanged names (ompx_put, ompx_get, ompx_fence, ompx_barrier(group))
 * are in diomp.h.
 *
 * A program may also keep its `#include <diomp.h>` and be compiled with -DDIOMP_COMPAT.
 *
 * Not here: the communicator objects of [2025]'s conduit (diompTeam, diompSeg, ...).
 *
 * Results: if the earlier call returned nothing, an error ends the job (DIOMP_ERRORS=abort).
 */
#ifndef DIOMP_COMPAT_H
#define DIOMP_COMPAT_H

#include "diomp.h"

/* NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): the names are given. */

/* ---- Start-up and ranks ---- */

/* Weak: one object in the program, even if several files include this header. */
__attribute__((weak)) void *diomp_compat_space_;
__attribute__((weak)) size_t diomp_compat_space_bytes_ = (size_t)64 << 20;

/** [2024] Sets the bytes of each rank's raw space, equal on all ranks. Call before
 * __init_diomp(). */
static inline void omp_set_distributed_size(size_t nbytes) { diomp_compat_space_bytes_ = nbytes; }

/** [2024] Collective. Starts DiOMP (it has started before main) and allocates the raw space. */
static inline void __init_diomp(void) {
    if (ompx_init() == OMPX_SUCCESS && diomp_compat_space_ == NULL) {
        diomp_compat_space_ = ompx_alloc(diomp_compat_space_bytes_, 4096, OMPX_MEM_SYMMETRIC);
    }
}
/** [2025] __init_diomp(). mode (1: one rank with several devices, 2: one rank per device) is
 * ignored: it only chose devices, which OpenMP does here. */
static inline void __init_diomp_target(int mode) {
    (void)mode;
    __init_diomp();
}

/** [2024, 2025] */
static inline int omp_get_rank_num(void) { return ompx_rank_num(); }
/** [2024, 2025] */
static inline int omp_get_num_ranks(void) { return ompx_num_ranks(); }

/* ---- Memory ---- */

/**
 * [2024] Start of the rank's raw space, as the rank sees it: for omp_put and omp_get to that rank,
 * and for loads and stores by the rank itself. Call __init_diomp() first. It was the whole segment;
 * here it is one symmetric allocation, so that it cannot overlap other allocations.
 */
static inline void *omp_get_space(int rank) {
    return ompx_global_ptr(diomp_compat_space_, rank, NULL);
}
/** [2024] Size of the raw space in bytes; equal on all ranks. */
static inline uintptr_t omp_get_length_space(int rank) {
    (void)rank;
    return diomp_compat_space_ == NULL ? 0 : (uintptr_t)diomp_compat_space_bytes_;
}
/** [2024] Collective: symmetric memory. */
static inline void *llvm_omp_distributed_alloc(size_t nbytes) {
    return ompx_alloc(nbytes, 64, OMPX_MEM_SYMMETRIC);
}

/* ---- Transfers and completion ---- */

/** [2024] Was complete only after a wait; here it is complete on return. */
static inline void omp_get(void *dst, int rank, const void *src, size_t nbytes) {
    (void)ompx_get(dst, rank, src, nbytes);
}
/** [2024] */
static inline void omp_put(int rank, void *dst, const void *src, size_t nbytes) {
    (void)ompx_put(rank, dst, src, nbytes);
}

/** [2025] Device memory: device or mapped addresses on either side. */
static inline void ompx_dget(void *dst, int rank, const void *src, size_t nbytes, int dst_device,
                             int src_device) {
    (void)ompx_target_get(dst, dst_device, rank, src, src_device, nbytes);
}
/** [2025] */
static inline void ompx_dput(void *dst, int rank, const void *src, size_t nbytes, int dst_device,
                             int src_device) {
    (void)ompx_target_put(rank, dst, dst_device, src, src_device, nbytes);
}

/** [2024] Kinds of transfers for diomp_waitRMA. */
typedef enum omp_event {
    omp_ev_get = OMPX_RMA_GET,
    omp_ev_put = OMPX_RMA_PUT,
    omp_ev_am = OMPX_RMA_ATOMIC
} omp_event_t;
static inline void diomp_waitRMA(omp_event_t kind) { (void)ompx_waitRMA((int)kind); }
/** [2024] */
static inline void diomp_waitALLRMA(void) { (void)ompx_waitALLRMA(); }

/** [2024] diomp_barrier(), [2025] diomp_barrier(group). */
#define diomp_barrier(...) ((void)ompx_barrier(__VA_ARGS__))
/** [2024] The lock at a rank. */
static inline void diomp_lock(int rank) { (void)ompx_lock(rank); }
static inline void diomp_unlock(int rank) { (void)ompx_unlock(rank); }

/* ---- Collectives of the world ---- */

/** [2024] */
typedef enum omp_dt {
    omp_int32 = OMPX_INT32,
    omp_uint32 = OMPX_UINT32,
    omp_int64 = OMPX_INT64,
    omp_uint64 = OMPX_UINT64,
    omp_float = OMPX_FLOAT,
    omp_double = OMPX_DOUBLE
} omp_dt_t;
/** [2024] The operators that reductions support. */
typedef enum omp_op {
    omp_op_add = OMPX_SUM,
    omp_op_mul = OMPX_PROD,
    omp_op_min = OMPX_MIN,
    omp_op_max = OMPX_MAX,
    omp_op_bit_and = OMPX_BAND,
    omp_op_bit_or = OMPX_BOR,
    omp_op_bit_xor = OMPX_BXOR
} omp_op_t;

/** [2024] */
static inline void omp_bcast(void *data, size_t nbytes, int root) {
    (void)ompx_bcast_from(data, nbytes, root, ompx_group_world);
}
/** [2024] The source comes first, unlike in ompx_allreduce. */
static inline void omp_allreduce(const void *src, void *dst, size_t count, omp_dt_t type,
                                 omp_op_t op) {
    (void)ompx_allreduce(dst, src, count, (ompx_type_t)type, (ompx_op_t)op, ompx_group_world);
}
/** [2025] */
static inline void omp_reduce(const void *src, void *dst, size_t count, omp_dt_t type, omp_op_t op,
                              int root) {
    (void)ompx_reduce(dst, src, count, (ompx_type_t)type, (ompx_op_t)op, root, ompx_group_world);
}

/* ---- Collectives of the world on devices ---- */

/** [2025] */
typedef enum omp_device_dt {
    ompx_d_int8 = OMPX_INT8,
    ompx_d_uint8 = OMPX_UINT8,
    ompx_d_int32 = OMPX_INT32,
    ompx_d_uint32 = OMPX_UINT32,
    ompx_d_int64 = OMPX_INT64,
    ompx_d_uint64 = OMPX_UINT64,
    ompx_d_int = OMPX_INT32,
    ompx_d_float16 = OMPX_FLOAT16,
    ompx_d_half = OMPX_FLOAT16,
    ompx_d_bfloat16 = OMPX_BFLOAT16,
    ompx_d_float32 = OMPX_FLOAT,
    ompx_d_float = OMPX_FLOAT,
    ompx_d_float64 = OMPX_DOUBLE,
    ompx_d_double = OMPX_DOUBLE
} omp_device_dt_t;
/** [2025] */
typedef enum omp_red_op {
    ompx_d_sum = OMPX_SUM,
    ompx_d_prod = OMPX_PROD,
    ompx_d_min = OMPX_MIN,
    ompx_d_max = OMPX_MAX,
    ompx_d_avg = OMPX_AVG
} omp_red_op_t;

/** [2025] Device or mapped addresses on `device`. */
static inline void ompx_dbcast(void *data, size_t count, omp_device_dt_t type, int root,
                               int device) {
    (void)ompx_target_bcast(data, device, count * ompx_type_size((ompx_type_t)type), root,
                            ompx_group_world);
}
/** [2025] The source comes first, unlike in ompx_target_allreduce. */
static inline void ompx_dallreduce(const void *src, void *dst, size_t count, omp_device_dt_t type,
                                   omp_red_op_t op, int device) {
    (void)ompx_target_allreduce(dst, src, device, count, (ompx_type_t)type, (ompx_op_t)op,
                                ompx_group_world);
}
/** [2025] */
static inline void ompx_dreduce(const void *src, void *dst, size_t count, omp_device_dt_t type,
                                omp_red_op_t op, int root, int device) {
    (void)ompx_target_reduce(dst, src, device, count, (ompx_type_t)type, (ompx_op_t)op, root,
                             ompx_group_world);
}

/* NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier) */

#endif /* DIOMP_COMPAT_H */
