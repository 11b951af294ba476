/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/target.h
 * Device memory in the global address space. Part of diomp.h, whose conventions hold; include that.
 */
#ifndef DIOMP_H
#include "../diomp.h" /* which includes this file in its place */
#endif
#ifndef DIOMP_TARGET_H
#define DIOMP_TARGET_H

/* ---- Device memory ---- */

/*
 * A `device` is OpenMP's device number in the calling process: 0 .. omp_get_num_devices() - 1, or
 * the host as omp_get_initial_device() or -1. A location on a device is named by a device address
 * or by a host address that is mapped on that device. A remote location is named (1) by the
 * caller's own pointer of either sort: it means the same offset of the device's segment at `rank`.
 * That is the same thing there if both ranks mapped and allocated the same in the same order; the
 * first use asks the owner, and a difference is an error that names both allocations; (2) by a
 * device address of `rank`, as `rank` sees it; or (3), for a `declare target` variable with
 * external linkage, by the caller's host address of it: that variable's copy at `rank`, which need
 * not have used its device. Device memory is in the address space when it comes from `map`,
 * omp_target_alloc or ompx_target_alloc, or with an image, in a process that runs with DiOMP's
 * libomptarget (diompcc, diomp-run). "DiOMP 2025" is Shan, Araya-Polo, Chapman: DiOMP-Offloading.
 */

/**
 * Number of devices that this rank drives: DIOMP_DEVICES_PER_RANK (diomp-run --devices-per-rank, 1
 * if not set), or 0 if the program has none (no image for devices, none here, OpenMP's offloading
 * disabled, not DiOMP's libomptarget). GPUs are divided among the ranks of the node that see them,
 * evenly, then by distance from the rank's processors, then by number; ranks share them if there is
 * less than one for each. Host devices are each rank's own: it drives the first of them. Other
 * devices stay usable. Any thread, does not block on other ranks. A negative status after an error
 * (OMPX_ERR_ARG: there are not that many; found at the start of main already).
 */
OMPX_API_ int ompx_get_num_rank_devices(void) OMPX_NOEXCEPT_;
/**
 * OpenMP's number of this rank's device `index`, 0 .. ompx_get_num_rank_devices() - 1, nearest
 * first. That of index 0 is the default device of the initial thread, and so of the threads of its
 * parallel regions, from the start of main on, unless OMP_DEFAULT_DEVICE is set; threads made in
 * other ways begin with device 0. OMPX_ERR_ARG: no such index.
 */
OMPX_API_ int ompx_get_rank_device(int index) OMPX_NOEXCEPT_;

/**
 * Memory on a device, at least 64-byte aligned. `allocator` is ompx_symmetric_mem_alloc (collective
 * over the world, same size: one's own address names every rank's copy), ompx_asymmetric_mem_alloc
 * (collective, sizes may differ) or ompx_local_mem_alloc. NULL after an error (OMPX_ERR_NOMEM: on
 * all ranks alike; OMPX_ERR_ARG; OMPX_ERR_MISMATCH; OMPX_ERR_UNSUPPORTED). DiOMP 2025, symmetric
 * and asymmetric device memory.
 */
OMPX_API_ void *ompx_target_alloc(size_t nbytes, int device, uintptr_t allocator) OMPX_NOEXCEPT_;
/**
 * Frees it; collective if the allocation was. NULL is allowed. Waits until ranks of other nodes
 * that have used it know that it is gone.
 */
OMPX_API_ int ompx_target_free(void *ptr, int device) OMPX_NOEXCEPT_;

/**
 * Copies nbytes from this rank's memory to that of `rank`. Returns when the source may be reused;
 * complete at the target after ompx_fence(). dst_device is a device number of `rank`, src_device
 * one of this rank. Where ranks drive different GPUs of a node, the number of the own device stands
 * for the device of `rank` in the same place of its list (ompx_get_rank_device()), unless `rank`
 * has used the device of that number. Errors: OMPX_ERR_ADDRESS (not mapped, freed, nothing there at
 * `rank`, a constant), OMPX_ERR_RANGE, OMPX_ERR_MISMATCH (ranks mapped different things, or
 * have different programs), OMPX_ERR_ARG (device).
 */
OMPX_API_ int ompx_target_put(int rank, void *dst, int dst_device, const void *src, int src_device,
                              size_t nbytes) OMPX_NOEXCEPT_;
/** The other way; dst holds the bytes on return. */
OMPX_API_ int ompx_target_get(void *dst, int dst_device, int rank, const void *src, int src_device,
                              size_t nbytes) OMPX_NOEXCEPT_;
/**
 * The same without waiting, as ompx_put_nb() and ompx_get_nb(): the local side belongs to the
 * transfer until `*event` is complete or, with a null `event`, until the next ompx_fence(). Copies
 * by a GPU go on by themselves (DiOMP 2025, stream pool). Memory of an own device that is freed or
 * unmapped meanwhile is freed when they are over.
 */
OMPX_API_ int ompx_target_put_nb(int rank, void *dst, int dst_device, const void *src,
                                 int src_device, size_t nbytes, ompx_event_t *event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_get_nb(void *dst, int dst_device, int rank, const void *src,
                                 int src_device, size_t nbytes, ompx_event_t *event) OMPX_NOEXCEPT_;

/**
 * Copies an n-dimensional box between arrays on devices or hosts: ompx_put_rect() with the devices
 * of ompx_target_put(), and in arguments and errors as both. dst and src are the beginnings of the
 * arrays; they and the box must lie in one mapped section or allocation each. volume, offsets and
 * dimensions are in elements, slowest dimension first (num_dims of each). Rows that are contiguous
 * are one copy of a GPU each, side by side; through host memory and between nodes rows are packed.
 * Put returns when the source may be reused and is complete at the target after ompx_fence(), get
 * when dst holds the box. Any thread. OMPX_ERR_RANGE: the box leaves one of the arrays, or the
 * array its memory.
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

/* As for ompx_put_detach. */
#if defined(_OPENMP) && (_OPENMP >= 201811 || defined(__clang__) || __GNUC__ >= 11)
/**
 * As ompx_target_put_nb() and ompx_target_get_nb(); completion, of a put at its target, fulfils the
 * detach event of an OpenMP task (OpenMP 5.0, 2.10.1), on whichever thread finds out. What bounces
 * through host memory, and everything in a world of one rank, is complete on return. An error after
 * the return has nobody to be told to and ends the job; errors of the call itself leave the event
 * alone. OMPX_ERR_UNSUPPORTED: the program's OpenMP has no omp_fulfill_event.
 */
OMPX_API_ int ompx_target_put_detach(int rank, void *dst, int dst_device, const void *src,
                                     int src_device, size_t nbytes,
                                     omp_event_handle_t event) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_target_get_detach(void *dst, int dst_device, int rank, const void *src,
                                     int src_device, size_t nbytes,
                                     omp_event_handle_t event) OMPX_NOEXCEPT_;
#endif

/** As ompx_segment_info() for a device. `resident` is 0. */
OMPX_API_ int ompx_target_segment_info(int device, ompx_segment_info_t *info) OMPX_NOEXCEPT_;

#endif /* DIOMP_TARGET_H */
