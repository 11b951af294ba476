/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/target_collective.h
 * Collectives on device copies. Part of diomp.h, whose conventions hold; include that.
 */
#ifndef DIOMP_H
#include "../diomp.h" /* which includes this file in its place */
#endif
#ifndef DIOMP_TARGET_COLLECTIVE_H
#define DIOMP_TARGET_COLLECTIVE_H

/* ---- OMPCCL: collectives on devices ---- */

/*
 * Each is the collective of the same name (ompx_bcast_from() and so on) on device memory: buffers
 * are device addresses, or host addresses that are mapped, which mean their copies on the device.
 * Roots, block numbers and sizes count the members of the group, ranks or endpoints.
 *
 * In a group of endpoints `device` says which of the caller's endpoints makes the call. Those of
 * one rank may call in any order, from one thread each or, without blocking (_nb), all from one;
 * the collective runs when all have called. OMPX_GROUP_DEVICES makes the call for all of them at
 * once, each with its own copy of the mapped buffer; what is used at the root only need be mapped
 * there only.
 * In a group of ranks every rank takes part with the one device it names, which may be the host;
 * OMPX_GROUP_DEVICES is the default device there.
 *
 * Who does the work: docs/collectives.md; DIOMP_CCL forces a choice. Errors beside those of the
 * collective: OMPX_ERR_ADDRESS (not mapped), OMPX_ERR_RANGE (past what is mapped), OMPX_ERR_ARG (no
 * such device, or it is not the caller's endpoint in the group). DiOMP 2025, OMPCCL.
 */
#define OMPX_GROUP_DEVICES (-2)

OMPX_API_ int ompx_target_bcast(void *ptr, int device, size_t nbytes, int root,
                                ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_reduce(void *dst, const void *src, int device, size_t count,
                                 ompx_type_t type, ompx_op_t op, int root,
                                 ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_allreduce(void *dst, const void *src, int device, size_t count,
                                    ompx_type_t type, ompx_op_t op,
                                    ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_gather(void *dst, const void *src, int device, size_t nbytes, int root,
                                 ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_scatter(void *dst, const void *src, int device, size_t nbytes, int root,
                                  ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_allgather(void *dst, const void *src, int device, size_t nbytes,
                                    ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_reduce_scatter(void *dst, const void *src, int device, size_t count,
                                         ompx_type_t type, ompx_op_t op,
                                         ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_alltoall(void *dst, const void *src, int device, size_t nbytes,
                                   ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_gatherv(void *dst, const size_t *nbytes, const size_t *offsets,
                                  const void *src, int device, int root,
                                  ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_scatterv(void *dst, const void *src, const size_t *nbytes,
                                   const size_t *offsets, int device, int root,
                                   ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_allgatherv(void *dst, const size_t *nbytes, const size_t *offsets,
                                     const void *src, int device,
                                     ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_alltoallv(void *dst, const size_t *dst_nbytes, const size_t *dst_offsets,
                                    const void *src, const size_t *src_nbytes,
                                    const size_t *src_offsets, int device,
                                    ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_scan(void *dst, const void *src, int device, size_t count,
                               ompx_type_t type, ompx_op_t op, ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_exscan(void *dst, const void *src, int device, size_t count,
                                 ompx_type_t type, ompx_op_t op, ompx_group_t group) OMPX_NOEXCEPT_;

/* Without blocking, as ompx_bcast_nb() and so on. */
OMPX_API_ int ompx_target_bcast_nb(void *ptr, int device, size_t nbytes, int root,
                                   ompx_group_t group, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_reduce_nb(void *dst, const void *src, int device, size_t count,
                                    ompx_type_t type, ompx_op_t op, int root, ompx_group_t group,
                                    ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_allreduce_nb(void *dst, const void *src, int device, size_t count,
                                       ompx_type_t type, ompx_op_t op, ompx_group_t group,
                                       ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_gather_nb(void *dst, const void *src, int device, size_t nbytes, int root,
                                    ompx_group_t group, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_scatter_nb(void *dst, const void *src, int device, size_t nbytes,
                                     int root, ompx_group_t group,
                                     ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_allgather_nb(void *dst, const void *src, int device, size_t nbytes,
                                       ompx_group_t group, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_reduce_scatter_nb(void *dst, const void *src, int device, size_t count,
                                            ompx_type_t type, ompx_op_t op, ompx_group_t group,
                                            ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_alltoall_nb(void *dst, const void *src, int device, size_t nbytes,
                                      ompx_group_t group, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_gatherv_nb(void *dst, const size_t *nbytes, const size_t *offsets,
                                     const void *src, int device, int root, ompx_group_t group,
                                     ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_scatterv_nb(void *dst, const void *src, const size_t *nbytes,
                                      const size_t *offsets, int device, int root,
                                      ompx_group_t group, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_allgatherv_nb(void *dst, const size_t *nbytes, const size_t *offsets,
                                        const void *src, int device, ompx_group_t group,
                                        ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_alltoallv_nb(void *dst, const size_t *dst_nbytes,
                                       const size_t *dst_offsets, const void *src,
                                       const size_t *src_nbytes, const size_t *src_offsets,
                                       int device, ompx_group_t group,
                                       ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_scan_nb(void *dst, const void *src, int device, size_t count,
                                  ompx_type_t type, ompx_op_t op, ompx_group_t group,
                                  ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_exscan_nb(void *dst, const void *src, int device, size_t count,
                                    ompx_type_t type, ompx_op_t op, ompx_group_t group,
                                    ompx_event_t *event) OMPX_NOEXCEPT_;

#endif /* DIOMP_TARGET_COLLECTIVE_H */
