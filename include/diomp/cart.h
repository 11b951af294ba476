/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/cart.h
 * Cartesian grids of ranks, and the exchange between neighbours. Part of diomp.h, which holds the
 * conventions; include diomp.h.
 */
#ifndef DIOMP_CART_H
#define DIOMP_CART_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Cartesian grids ---- */

/**
 * Chooses the extents of a grid of num_ranks: dims[num_dims] with a 0 are set so that all extents
 * multiply to num_ranks and the chosen ones are as close to each other as possible, in descending
 * order; others are kept. Does not block; valid without a runtime. OMPX_ERR_ARG if num_ranks is not
 * a multiple of the given extents. MPI 4.0, 8.5.2 (MPI_Dims_create).
 */
OMPX_API_ int ompx_dims_create(int num_ranks, int num_dims, int *dims) OMPX_NOEXCEPT_;
/**
 * Creates a grid of dims[num_dims] ranks, of which periodic[i] != 0 are rings (NULL: none).
 * Collective over `group`, a group of ranks; all members pass the same arguments. The last
 * dimension varies fastest: positions are those of the members in the group. With reorder != 0 the
 * members are arranged so that neighbours share a node, if all nodes have as many members and these
 * can be a block of the grid. Members beyond the grid get OMPX_CART_NONE. OMPX_ERR_ARG if the grid
 * is larger than the group; OMPX_ERR_MISMATCH on all members if the arguments differ.
 * MPI 4.0, 8.5.1 (MPI_Cart_create).
 */
OMPX_API_ int ompx_cart_create(ompx_group_t group, int num_dims, const int *dims,
                               const int *periodic, int reorder, ompx_cart_t *cart) OMPX_NOEXCEPT_;
/** Frees a grid and sets *cart to OMPX_CART_NONE. Not collective, but after this rank's last
 * exchange. */
OMPX_API_ int ompx_cart_free(ompx_cart_t *cart) OMPX_NOEXCEPT_;
/** Number of dimensions; number of positions. Do not block. */
OMPX_API_ int ompx_cart_num_dims(ompx_cart_t cart) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_cart_size(ompx_cart_t cart) OMPX_NOEXCEPT_;
/** Extents, and 1 or 0 for periodic or not: dims, periodic [ompx_cart_num_dims()], each may be
 * NULL. Does not block. */
OMPX_API_ int ompx_cart_dims(ompx_cart_t cart, int *dims, int *periodic) OMPX_NOEXCEPT_;
/** The world rank at coords[ompx_cart_num_dims()]. Periodic coordinates wrap; others outside of the
 * grid give OMPX_NO_RANK, without an error. Does not block. */
OMPX_API_ int ompx_cart_rank(ompx_cart_t cart, const int *coords, int *rank) OMPX_NOEXCEPT_;
/** The coordinates of a world rank: coords[ompx_cart_num_dims()]. Does not block. OMPX_ERR_RANK if
 * it has no position in the grid. */
OMPX_API_ int ompx_cart_coords(ompx_cart_t cart, int rank, int *coords) OMPX_NOEXCEPT_;
/** The world ranks that are `displacement` positions before (*source) and after (*target) this one
 * in a dimension, or OMPX_NO_RANK. Does not block. MPI 4.0, 8.5.6 (MPI_Cart_shift). */
OMPX_API_ int ompx_cart_shift(ompx_cart_t cart, int dim, int displacement, int *source,
                              int *target) OMPX_NOEXCEPT_;
/**
 * Sends a block of nbytes to each neighbour and receives one from each. Blocks i * nbytes of
 * send[2 * num_dims * nbytes] and receive[] belong to the neighbours in the order: before and after
 * in dimension 0, before and after in dimension 1, and so on; those of missing neighbours are not
 * touched. In a ring of one or two ranks, what is sent to the one after is received by it as from
 * the one before.
 *
 * Collective over the grid, but it waits only for the neighbours' blocks, without a barrier. On
 * return all of `send` may be reused. The first exchange, and one with larger blocks than before,
 * allocates channels (ompx_channel_create) in the segments. All ranks must pass the same nbytes:
 * OMPX_ERR_MISMATCH at neighbours that do not, or OMPX_ERR_TIMEOUT. MPI 4.0, 8.6.2
 * (MPI_Neighbor_alltoall).
 */
OMPX_API_ int ompx_cart_exchange(ompx_cart_t cart, const void *send, void *receive,
                                 size_t nbytes) OMPX_NOEXCEPT_;
/** ompx_cart_exchange() with an address and a size for each block: all lists are
 * [2 * num_dims]. What a rank sends to a neighbour must be as large as what that one receives from
 * it; empty blocks are valid. */
OMPX_API_ int ompx_cart_exchangev(ompx_cart_t cart, const void *const *send,
                                  const size_t *send_nbytes, void *const *receive,
                                  const size_t *receive_nbytes) OMPX_NOEXCEPT_;
/**
 * Exchanges blocks as ompx_cart_exchangev() does, in one dimension only: all lists are [2], for the
 * neighbours before and after in dimension `dim`. Halos that have received one dimension before
 * they send the next one carry the corners, so that no block goes to a diagonal neighbour.
 *
 * Collective over the ranks that differ in coordinate `dim` only; waits for the neighbours' blocks
 * only. Neighbours call this and the other exchanges in the same order. OMPX_ERR_ARG if `dim` is
 * not a dimension of the grid.
 */
OMPX_API_ int ompx_cart_exchange_dim(ompx_cart_t cart, int dim, const void *const *send,
                                     const size_t *send_nbytes, void *const *receive,
                                     const size_t *receive_nbytes) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_CART_H */
