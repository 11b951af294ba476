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
 *    Segments of ranks on different nodes may be at the same addresses, so such an address names a
 *    location together with `rank` only.
 *  - The local side of a transfer may be any memory of the calling process.
 *
 * "DiOMP 2024" below is Shan, Araya-Polo, Chapman: DiOMP, a PGAS extension of LLVM/OpenMP.
 */
#ifndef DIOMP_H
#define DIOMP_H

#define DIOMP_VERSION_MAJOR 1
#define DIOMP_VERSION_MINOR 0
#define DIOMP_VERSION_PATCH 0

#include "diomp/atomic.h"
#include "diomp/cart.h"
#include "diomp/channel.h"
#include "diomp/collective.h"
#include "diomp/device.h"
#include "diomp/group.h"
#include "diomp/lock.h"
#include "diomp/memory.h"
#include "diomp/nonblocking.h"
#include "diomp/plan.h"
#include "diomp/process.h"
#include "diomp/status.h"
#include "diomp/sync.h"
#include "diomp/target.h"
#include "diomp/target_collective.h"
#include "diomp/transfer.h"
#include "diomp/types.h"
#include "diomp/wait.h"

#if defined(__cplusplus)
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
