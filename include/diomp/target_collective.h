/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/target_collective.h
 * Collectives on device memory. Part of diomp.h, which holds the conventions; include diomp.h.
 */
#ifndef DIOMP_TARGET_COLLECTIVE_H
#define DIOMP_TARGET_COLLECTIVE_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- OMPCCL: collectives on devices ---- */

/*
 * Each is the collective of the same name (ompx_bcast_from() and so on) on device memory: buffers
 * are device addresses, or mapped host addresses, which stand for their copies on the device.
 * Roots, block numbers and sizes refer to the members of the group, ranks or endpoints.
 *
 * In a group of endpoints, `device` selects the endpoint of the caller that makes the call. The
 * endpoints of a rank may call in any order, from one thread each or, with the _nb functions, all
 * from one thread; the collective runs once all have called. OMPX_GROUP_DEVICES makes the call for
 * all of them at once, each with its own copy of the mapped buffer; a buffer that is used at the
 * root only need be mapped there only.
 * In a group of ranks, each rank takes part with one device, which may be the host;
 * OMPX_GROUP_DEVICES means the default device.
 *
 * Devices may be remote devices (docs/remote.md): if a job has any, a call that one member cannot
 * make, since its buffer is wrong or its device is lost, fails on all members with the same code.
 *
 * docs/collectives.md describes how a call is executed; DIOMP_CCL forces a choice. Errors in
 * addition to those of the collective: OMPX_ERR_ADDRESS (not mapped), OMPX_ERR_RANGE (exceeds the
 * mapped memory), OMPX_ERR_ARG (no such device, or it is not the caller's endpoint in the group).
 * DiOMP 2025, OMPCCL.
 */
OMPX_API_ int ompx_target_bcast_from(void *ptr, int device, size_t nbytes, int root,
                                     ompx_group_t group) OMPX_NOEXCEPT_;
/** Earlier name of ompx_target_bcast_from(): unlike ompx_bcast() it has a root. It stays. */
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

/* Non-blocking variants, see ompx_bcast_from_nb(). */
OMPX_API_ int ompx_target_bcast_from_nb(void *ptr, int device, size_t nbytes, int root,
                                        ompx_group_t group, ompx_event_t *event) OMPX_NOEXCEPT_;
/** Earlier name of ompx_target_bcast_from_nb(). It stays. */
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

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_TARGET_COLLECTIVE_H */
