/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/group.h
 * Groups of ranks and of endpoints. Part of diomp.h, which holds the conventions; include diomp.h.
 */
#ifndef DIOMP_GROUP_H
#define DIOMP_GROUP_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Groups ---- */

/** Creates a group of ranks[size], world ranks. Collective over the listed ranks only, which all
 * pass the same list. The caller must be in the list; no rank may be listed twice. After
 * OMPX_ERR_TIMEOUT the caller's next creation of a group of these ranks takes up the one that timed
 * out: with the group that late ranks then have. */
OMPX_API_ int ompx_group_create(ompx_group_t *group, const int *ranks, int size) OMPX_NOEXCEPT_;
/**
 * Creates a group of endpoints[size]. Collective over the ranks in the list only, which all pass
 * the same list. The caller must be in the list; no endpoint may be listed twice. A device that
 * does not exist is reported by the first call that uses it. DiOMP 2025, groups.
 */
OMPX_API_ int ompx_group_create_endpoints(ompx_group_t *group, const ompx_endpoint_t *endpoints,
                                          int size) OMPX_NOEXCEPT_;
/**
 * Creates a group of all devices that the members of `ranks`, a group of ranks, drive
 * (ompx_rank_device()), in the order of the ranks, then of each rank's list. Collective over
 * `ranks`. A rank without devices is not in the group and gets OMPX_GROUP_NONE.
 */
OMPX_API_ int ompx_group_create_devices(ompx_group_t ranks, ompx_group_t *result) OMPX_NOEXCEPT_;
/** Splits a group: members with equal color form a new group, ordered by key, then by their number
 * in `group`. Collective over `group`. All endpoints of a rank get the same color and key. A member
 * with a negative color must call too and gets OMPX_GROUP_NONE. */
OMPX_API_ int ompx_group_split(ompx_group_t group, int color, int key,
                               ompx_group_t *result) OMPX_NOEXCEPT_;
/**
 * Splits a group by node: the members on the caller's node form a new group, in the order of
 * `group`. A node is a set of ranks that load and store each other's memory (ompx_remote_ptr);
 * ranks of one host that a network connects (DIOMP_CONDUIT) are nodes of their own. Collective over
 * `group`. As MPI_Comm_split_type with MPI_COMM_TYPE_SHARED (MPI 4.0, 7.4.2).
 */
OMPX_API_ int ompx_group_split_node(ompx_group_t group, ompx_group_t *result) OMPX_NOEXCEPT_;
/** ompx_group_split() with a color and a key for each of the caller's endpoints, in the group's
 * order, and as many results: colors, keys, results [ompx_group_num_own_endpoints()]. The caller's
 * endpoints of equal color get the same handle, which must be freed once. */
OMPX_API_ int ompx_group_split_endpoints(ompx_group_t group, const int *colors, const int *keys,
                                         ompx_group_t *results) OMPX_NOEXCEPT_;
/** Creates a group of the members of a, then those of b that are not in a. Collective over the
 * union. A rank that is not in one of the groups passes OMPX_GROUP_NONE for it; at least one rank
 * must be in both. Both groups have ranks or both have endpoints as members. */
OMPX_API_ int ompx_group_merge(ompx_group_t a, ompx_group_t b, ompx_group_t *result) OMPX_NOEXCEPT_;
/** Creates a group of the same members, for calls whose order is independent of those of `group`.
 * Collective over the group. */
OMPX_API_ int ompx_group_dup(ompx_group_t group, ompx_group_t *result) OMPX_NOEXCEPT_;
/** Frees a group and sets *group to OMPX_GROUP_NONE. Collective over the group; no target region
 * may make calls on it meanwhile. OMPX_ERR_ARG for the world. */
OMPX_API_ int ompx_group_free(ompx_group_t *group) OMPX_NOEXCEPT_;
/** Number of members; number of this rank in the group, of its first endpoint if it has several
 * (negative status if it is not a member). Do not block. */
OMPX_API_ int ompx_group_size(ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_group_rank(ompx_group_t group) OMPX_NOEXCEPT_;
/** World rank of a member. Does not block. */
OMPX_API_ int ompx_group_world_rank(ompx_group_t group, int member) OMPX_NOEXCEPT_;
/** Writes the numbers of the members on the caller's node, itself among them, in ascending order
 * into members[count], as many as fit. Returns how many there are. NULL is valid with a count of 0.
 * Does not block. */
OMPX_API_ int ompx_group_node_members(ompx_group_t group, int *members, int count) OMPX_NOEXCEPT_;
/** Number of the caller's endpoints in a group of endpoints; 0 for a group of ranks. Does not
 * block. */
OMPX_API_ int ompx_group_num_own_endpoints(ompx_group_t group) OMPX_NOEXCEPT_;
/** Rank and device of a member of a group of endpoints. Does not block. OMPX_ERR_ARG for a group of
 * ranks. */
OMPX_API_ int ompx_group_endpoint(ompx_group_t group, int member,
                                  ompx_endpoint_t *endpoint) OMPX_NOEXCEPT_;
/**
 * Translates members[count], numbers in `from`, into numbers in `to`: results[i] is OMPX_NO_MEMBER
 * if the member is not in `to`. Between a group of ranks and one of endpoints, a rank corresponds
 * to its first endpoint and an endpoint to its rank. Does not block. Compare
 * MPI_Group_translate_ranks (MPI 4.0, 7.3.1).
 */
OMPX_API_ int ompx_group_translate(ompx_group_t from, const int *members, int count,
                                   ompx_group_t to, int *results) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_GROUP_H */
