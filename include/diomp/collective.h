/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/collective.h
 * Collectives over groups. Part of diomp.h, which holds the conventions; include diomp.h.
 */
#ifndef DIOMP_COLLECTIVE_H
#define DIOMP_COLLECTIVE_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- OMPCCL: collectives ---- */

/*
 * All are collective over the group, a group of ranks (ompx_barrier_nb: any group), and block until
 * the caller's buffers may be used. Buffers may be any memory of the calling process. nbytes and
 * count are per rank and must be equal on all members. dst == src means in place if a call has
 * both; buffers must not overlap otherwise, nor the blocks of a v form at one member.
 * The _nb functions return at once; the buffers must not be used until *event is complete.
 * Calls on one group must be made in the same order on all its members; calls on different groups
 * may run concurrently in different threads. Shapes of buffers are in brackets; [size] is the
 * number of members.
 */
/** Copies ptr[nbytes] from group rank 0 to all members; the form in the papers. */
OMPX_API_ int ompx_bcast(void *ptr, size_t nbytes, ompx_group_t group) OMPX_NOEXCEPT_;
/** Copies ptr[nbytes] from the root to all members. */
OMPX_API_ int ompx_bcast_from(void *ptr, size_t nbytes, int root,
                              ompx_group_t group) OMPX_NOEXCEPT_;
/** dst[count] at root: the combined src[count]. dst is used at root only. */
OMPX_API_ int ompx_reduce(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                          int root, ompx_group_t group) OMPX_NOEXCEPT_;
/** dst[count] on all members: the combined src[count]. */
OMPX_API_ int ompx_allreduce(void *dst, const void *src, size_t count, ompx_type_t type,
                             ompx_op_t op, ompx_group_t group) OMPX_NOEXCEPT_;
/** dst[size][nbytes] at root, src[nbytes] on all members. In place at root:
 * src == dst + root * nbytes. */
OMPX_API_ int ompx_gather(void *dst, const void *src, size_t nbytes, int root,
                          ompx_group_t group) OMPX_NOEXCEPT_;
/** src[size][nbytes] at root, dst[nbytes] on all members. In place at root:
 * dst == src + root * nbytes. */
OMPX_API_ int ompx_scatter(void *dst, const void *src, size_t nbytes, int root,
                           ompx_group_t group) OMPX_NOEXCEPT_;
/** dst[size][nbytes], src[nbytes]. In place: src == dst + rank * nbytes. */
OMPX_API_ int ompx_allgather(void *dst, const void *src, size_t nbytes,
                             ompx_group_t group) OMPX_NOEXCEPT_;
/** dst[count], src[size][count]: member r gets block r of the reduction. In place: dst == src. */
OMPX_API_ int ompx_reduce_scatter(void *dst, const void *src, size_t count, ompx_type_t type,
                                  ompx_op_t op, ompx_group_t group) OMPX_NOEXCEPT_;
/** dst[size][nbytes], src[size][nbytes]: block i of src goes to member i. In place: dst == src. */
OMPX_API_ int ompx_alltoall(void *dst, const void *src, size_t nbytes,
                            ompx_group_t group) OMPX_NOEXCEPT_;

/**
 * Variants with a size for each member: block r has nbytes[r] bytes; nbytes[size] is equal on all
 * members. Block r starts offsets[r] bytes after the start of the buffer with all blocks; with NULL
 * offsets the blocks are contiguous. Offsets are used only where that buffer is used and may differ
 * between members. In place: the caller's own block is at its position in that buffer.
 */
OMPX_API_ int ompx_gatherv(void *dst, const size_t *nbytes, const size_t *offsets, const void *src,
                           int root, ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_scatterv(void *dst, const void *src, const size_t *nbytes, const size_t *offsets,
                            int root, ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_allgatherv(void *dst, const size_t *nbytes, const size_t *offsets,
                              const void *src, ompx_group_t group) OMPX_NOEXCEPT_;
/** Block i of src, of src_nbytes[i] bytes, goes to member i, where dst_nbytes[caller] must be
 * equal. Not in place. OMPX_ERR_MISMATCH if two members pass different sizes of a block. */
OMPX_API_ int ompx_alltoallv(void *dst, const size_t *dst_nbytes, const size_t *dst_offsets,
                             const void *src, const size_t *src_nbytes, const size_t *src_offsets,
                             ompx_group_t group) OMPX_NOEXCEPT_;
/** dst at member r: src of members 0 to r combined in that order. In place: dst == src. */
OMPX_API_ int ompx_scan(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                        ompx_group_t group) OMPX_NOEXCEPT_;
/** dst at member r: src of members 0 to r - 1 combined in that order; dst of member 0 is unchanged.
 * In place: dst == src. */
OMPX_API_ int ompx_exscan(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                          ompx_group_t group) OMPX_NOEXCEPT_;

/** Non-blocking barrier; fences before it returns, and *event is complete once all members have
 * called. */
OMPX_API_ int ompx_barrier_nb(ompx_group_t group, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_bcast_from_nb(void *ptr, size_t nbytes, int root, ompx_group_t group,
                                 ompx_event_t *event) OMPX_NOEXCEPT_;
/** Earlier name of ompx_bcast_from_nb(): unlike ompx_bcast() it has a root. It stays. */
OMPX_API_ int ompx_bcast_nb(void *ptr, size_t nbytes, int root, ompx_group_t group,
                            ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_reduce_nb(void *dst, const void *src, size_t count, ompx_type_t type,
                             ompx_op_t op, int root, ompx_group_t group,
                             ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_allreduce_nb(void *dst, const void *src, size_t count, ompx_type_t type,
                                ompx_op_t op, ompx_group_t group,
                                ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_gather_nb(void *dst, const void *src, size_t nbytes, int root,
                             ompx_group_t group, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_scatter_nb(void *dst, const void *src, size_t nbytes, int root,
                              ompx_group_t group, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_allgather_nb(void *dst, const void *src, size_t nbytes, ompx_group_t group,
                                ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_reduce_scatter_nb(void *dst, const void *src, size_t count, ompx_type_t type,
                                     ompx_op_t op, ompx_group_t group,
                                     ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_alltoall_nb(void *dst, const void *src, size_t nbytes, ompx_group_t group,
                               ompx_event_t *event) OMPX_NOEXCEPT_;
/** The lists of sizes and offsets may be reused on return, but not the buffers. */
OMPX_API_ int ompx_gatherv_nb(void *dst, const size_t *nbytes, const size_t *offsets,
                              const void *src, int root, ompx_group_t group,
                              ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_scatterv_nb(void *dst, const void *src, const size_t *nbytes,
                               const size_t *offsets, int root, ompx_group_t group,
                               ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_allgatherv_nb(void *dst, const size_t *nbytes, const size_t *offsets,
                                 const void *src, ompx_group_t group,
                                 ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_alltoallv_nb(void *dst, const size_t *dst_nbytes, const size_t *dst_offsets,
                                const void *src, const size_t *src_nbytes,
                                const size_t *src_offsets, ompx_group_t group,
                                ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_scan_nb(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                           ompx_group_t group, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_exscan_nb(void *dst, const void *src, size_t count, ompx_type_t type,
                             ompx_op_t op, ompx_group_t group, ompx_event_t *event) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_COLLECTIVE_H */
