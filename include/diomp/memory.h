/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/memory.h
 * Memory in the global address space. Part of diomp.h, which holds the conventions.
 */
#ifndef DIOMP_MEMORY_H
#define DIOMP_MEMORY_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Memory ---- */

/*
 * Allocator handles for omp_alloc, omp_aligned_alloc, omp_calloc, omp_aligned_calloc, omp_realloc,
 * omp_free and `#pragma omp allocate`. OpenMP's own allocators remain usable.
 *
 * - symmetric: collective, equal size on all ranks; equal offset in all segments, so a rank's own
 *   address names the counterparts on all ranks. Freeing and reallocating are collective too.
 * - asymmetric: collective, sizes may differ (including 0); each rank gets its own block. Other
 *   ranks find it by a 32-byte second-level pointer in symmetric memory (DiOMP 2024, unaligned
 *   global memory): the first access takes two transfers, later ones one. In a job on several
 *   nodes, each rank reserves as many addresses as the largest block has, and commits its own.
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
 * NULL (with an error, see above). Alignment is at least 64 bytes. omp_realloc within one kind of
 * memory is ompx_realloc().
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
 * Changes the size of a block of these three kinds to nbytes and returns its new address, aligned
 * to 64 bytes. The first min(old size, nbytes) bytes keep their contents; the others are undefined.
 * Collective for symmetric memory (equal sizes) and for asymmetric memory (each rank passes its own
 * block and size, since the others keep copies of its address), not for local memory. A collective
 * call includes a fence and returns after all ranks have copied, so that puts may follow at once;
 * it completes what was put to the block before the call, and nothing else may access the block
 * meanwhile. With a NULL ptr allocates symmetric memory; with 0 bytes frees the block and returns
 * NULL, but asymmetric memory only if all ranks pass 0: otherwise such a rank keeps a block of 0
 * bytes. On an error returns NULL, on all ranks, and the block stays as it is: OMPX_ERR_NOMEM,
 * OMPX_ERR_MISMATCH, or OMPX_ERR_ADDRESS if no allocation starts at ptr. Compare shmem_realloc
 * (OpenSHMEM 1.5).
 */
OMPX_API_ void *ompx_realloc(void *ptr, size_t nbytes) OMPX_NOEXCEPT_;

/**
 * Makes the memory [ptr, ptr + nbytes) of the program accessible to all ranks under its local
 * address. Not collective. The range must stay valid until ompx_unregister(ptr), and writable if
 * other ranks put to it or update it. OMPX_ERR_ARG if nbytes is 0; OMPX_ERR_ADDRESS if the range is
 * in a segment, overlaps a registered range, or has addresses without memory.
 */
OMPX_API_ int ompx_register(void *ptr, size_t nbytes) OMPX_NOEXCEPT_;
/** Ends the registration of the range that starts at ptr. Not collective, and waits for no other
 * rank: all transfers to and from the range must be complete, as after fences and a barrier.
 * OMPX_ERR_ADDRESS if no registered range starts there. */
OMPX_API_ int ompx_unregister(void *ptr) OMPX_NOEXCEPT_;
/**
 * Makes the memory [ptr, ptr + nbytes), which all ranks have, symmetric: variables of static
 * storage, or arrays whose addresses may differ between ranks. A rank's own address then names the
 * counterpart on every rank; it has this meaning before that of a range of ompx_register().
 * Writable static data of one program or library moves to symmetric memory, with its address
 * unchanged: all transfers reach it as such, and ompx_remote_ptr() has an address of it. No thread
 * may write to static data during the call; a forked child gets a copy. Other memory is moved as
 * registered memory. Collective, with equal sizes; a put may follow at once. OMPX_ERR_ADDRESS as
 * for ompx_register(), on all ranks. As OpenSHMEM's symmetric static data and MPI_Win_create.
 */
OMPX_API_ int ompx_register_symmetric(void *ptr, size_t nbytes) OMPX_NOEXCEPT_;
/** Ends that registration. Collective; includes a fence. */
OMPX_API_ int ompx_unregister_symmetric(void *ptr) OMPX_NOEXCEPT_;

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

/** Describes an address of this rank, or of a rank of its node as that rank sees it. (Segments of
 * ranks on other nodes may be at the same addresses: keep the rank together with an address that
 * comes from there.) Memory that is not global gives rank -1 and OMPX_MEM_NONE, without an error.
 * Does not block. */
OMPX_API_ int ompx_addr_info(const void *p, ompx_addr_info_t *info) OMPX_NOEXCEPT_;

/** Describes this rank's segment. Does not block. */
OMPX_API_ int ompx_segment_info(ompx_segment_info_t *info) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_MEMORY_H */
