/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/target.h
 * Device memory in the global address space. Part of diomp.h, which holds the conventions; include
 * diomp.h.
 */
#ifndef DIOMP_TARGET_H
#define DIOMP_TARGET_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Device memory ---- */

/*
 * A `device` is OpenMP's device number in the calling process: 0 .. omp_get_num_devices() - 1, or
 * for the host omp_get_initial_device() or -1. A location on a device is named by a device address,
 * or by a host address that is mapped on that device. A remote location is named
 * (1) by such a pointer of the caller: it means the same offset in the device's segment at `rank`.
 * This is the corresponding object if both ranks mapped and allocated the same in the same order.
 * The first use checks this with the owner; a difference is an error that names both allocations;
 * (2) by a device address of `rank`, as `rank` sees it (an error if, with host devices of ranks on
 * different nodes, it is also an address in asymmetric memory of the caller's device); or
 * (3) for a `declare target` variable with external linkage by the caller's host address: it means
 * the copy of that variable at `rank`, which need not have used its device.
 * Device memory is in the global address space if it was allocated by `map`, omp_target_alloc or
 * ompx_target_alloc, or belongs to an image, in a process that runs with DiOMP's libomptarget
 * (diompcc, diomp-run). "DiOMP 2025" is Shan, Araya-Polo, Chapman: DiOMP-Offloading.
 */

/**
 * Number of devices that this rank drives: DIOMP_DEVICES_PER_RANK (diomp-run --devices-per-rank,
 * default 1), or 0 without devices (no device image, no device on this node, OpenMP's offloading
 * disabled, not DiOMP's libomptarget). GPUs are divided among the ranks of the node that see them:
 * evenly, then by distance from the rank's processors, then by number; ranks share GPUs if there
 * are fewer GPUs than ranks. Host devices are private to each rank, which drives the first ones.
 * Other devices remain usable. Does not block on other ranks. A negative status on an error
 * (OMPX_ERR_ARG: too few devices; already reported when main starts).
 */
OMPX_API_ int ompx_num_rank_devices(void) OMPX_NOEXCEPT_;
/**
 * OpenMP's number of this rank's device `index`, 0 .. ompx_num_rank_devices() - 1, nearest
 * first. When main starts, the device of index 0 becomes the default device of the initial thread
 * (and of the threads of its parallel regions) unless OMP_DEFAULT_DEVICE is set; threads created
 * otherwise start with device 0. Does not block on other ranks. OMPX_ERR_ARG if there is no such
 * index.
 */
OMPX_API_ int ompx_rank_device(int index) OMPX_NOEXCEPT_;
/** Earlier names of ompx_num_rank_devices() and ompx_rank_device(). They stay. */
OMPX_API_ int ompx_get_num_rank_devices(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_rank_device(int index) OMPX_NOEXCEPT_;

/**
 * Allocates nbytes on a device, at least 64-byte aligned. `allocator` is ompx_symmetric_mem_alloc
 * (collective over the world, equal size: a rank's own address names the counterparts on all
 * ranks), ompx_asymmetric_mem_alloc (collective, sizes may differ) or ompx_local_mem_alloc. NULL on
 * an error (OMPX_ERR_NOMEM: on all ranks; OMPX_ERR_ARG; OMPX_ERR_MISMATCH; OMPX_ERR_UNSUPPORTED).
 * DiOMP 2025, symmetric and asymmetric device memory.
 */
OMPX_API_ void *ompx_target_alloc(size_t nbytes, int device, uintptr_t allocator) OMPX_NOEXCEPT_;
/**
 * Frees memory of ompx_target_alloc(); collective if the allocation was. NULL is allowed. Blocks
 * until ranks of other nodes that have used the memory have invalidated their references to it.
 * OMPX_ERR_ADDRESS if no such allocation starts at ptr.
 */
OMPX_API_ int ompx_target_free(void *ptr, int device) OMPX_NOEXCEPT_;

/**
 * Copies nbytes from this rank's memory to that of `rank`. Returns when the source may be reused;
 * complete at the target after ompx_fence(). dst_device is a device number of `rank`, src_device
 * one of this rank. If ranks drive different GPUs of a node, the number of the caller's own device
 * stands for the device of `rank` with the same index (ompx_rank_device()), unless `rank` has
 * used the device of that number. Errors: OMPX_ERR_ADDRESS (not mapped, freed, not allocated at
 * `rank`, a constant), OMPX_ERR_RANGE, OMPX_ERR_MISMATCH (the ranks' mappings or programs differ),
 * OMPX_ERR_ARG (device).
 */
OMPX_API_ int ompx_target_put(int rank, void *dst, int dst_device, const void *src, int src_device,
                              size_t nbytes) OMPX_NOEXCEPT_;
/** Copies nbytes from the memory of `rank` to this rank's memory. Blocks until dst holds the data.
 * Devices and errors as for ompx_target_put(): src_device is a device number of `rank`. */
OMPX_API_ int ompx_target_get(void *dst, int dst_device, int rank, const void *src, int src_device,
                              size_t nbytes) OMPX_NOEXCEPT_;
/**
 * Non-blocking ompx_target_put() and ompx_target_get(): the local memory must not be changed (put)
 * or used (get) until `*event` is complete or, with a null `event`, until the next ompx_fence().
 * GPUs copy in the background (DiOMP 2025, stream pool), and so do services of remote processors.
 * Local device memory that is freed or unmapped meanwhile is released when the copies are complete.
 */
OMPX_API_ int ompx_target_put_nb(int rank, void *dst, int dst_device, const void *src,
                                 int src_device, size_t nbytes, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_get_nb(void *dst, int dst_device, int rank, const void *src,
                                 int src_device, size_t nbytes, ompx_event_t *event) OMPX_NOEXCEPT_;

/**
 * Copies an n-dimensional box between arrays on devices or hosts: ompx_put_rect() and
 * ompx_get_rect() with the devices of ompx_target_put(). dst and src are the beginnings of the
 * arrays; each array must be within one mapped section or allocation. volume, offsets and
 * dimensions [num_dims] are in elements, slowest dimension first. A GPU copies contiguous rows in
 * parallel, one copy each; through host memory and between nodes rows are packed. Put returns when
 * the source may be reused and is complete at the target after ompx_fence(); get blocks until dst
 * holds the box. OMPX_ERR_RANGE if the box exceeds one of the arrays, or the memory that it lies
 * in.
 */
OMPX_API_ int ompx_target_put_rect(int rank, void *dst, int dst_device, const void *src,
                                   int src_device, size_t element_size, int num_dims,
                                   const size_t *volume, const size_t *dst_offsets,
                                   const size_t *src_offsets, const size_t *dst_dimensions,
                                   const size_t *src_dimensions) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_get_rect(void *dst, int dst_device, int rank, const void *src,
                                   int src_device, size_t element_size, int num_dims,
                                   const size_t *volume, const size_t *dst_offsets,
                                   const size_t *src_offsets, const size_t *dst_dimensions,
                                   const size_t *src_dimensions) OMPX_NOEXCEPT_;

/* Same compilers as for ompx_put_detach. */
#if defined(_OPENMP) && (_OPENMP >= 201811 || defined(__clang__) || __GNUC__ >= 11)
/**
 * Non-blocking ompx_target_put() and ompx_target_get() whose completion (of a put: at its target)
 * fulfils the detach event of an OpenMP task (OpenMP 5.0, 2.10.1), on the thread that observes it.
 * Transfers through host memory, and all transfers in a world of one rank, are complete on return.
 * An error after the return ends the job; an error of the call itself does not fulfil the event.
 * OMPX_ERR_UNSUPPORTED without omp_fulfill_event in the program's OpenMP.
 */
OMPX_API_ int ompx_target_put_detach(int rank, void *dst, int dst_device, const void *src,
                                     int src_device, size_t nbytes,
                                     omp_event_handle_t event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_get_detach(void *dst, int dst_device, int rank, const void *src,
                                     int src_device, size_t nbytes,
                                     omp_event_handle_t event) OMPX_NOEXCEPT_;
#endif

/** Describes the segment of a device, as ompx_segment_info() does for the host; `resident` is 0.
 * Does not block. */
OMPX_API_ int ompx_target_segment_info(int device, ompx_segment_info_t *info) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_TARGET_H */
