/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/group.h
 * Groups of ranks and of endpoints. Part of diomp.h, whose conventions hold; include that.
 */
#ifndef DIOMP_H
#include "../diomp.h" /* which includes this file in its place */
#endif
#ifndef DIOMP_GROUP_H
#define DIOMP_GROUP_H

/* ---- Groups ---- */

/**
 * An ordered set of members: ranks, or endpoints, which are devices of ranks. NULL is the world of
 * ranks. Members are numbered from 0 in the group's order. A rank may be in a group with several
 * endpoints; it then takes part in collectives on devices with each of them, and in barrier, fence
 * and what makes and ends groups once.
 */
typedef struct ompx_group *ompx_group_t;
#define ompx_group_world ((ompx_group_t)NULL)

/** A device of a rank. `device` is OpenMP's number there; -1 is its host. */
typedef struct ompx_endpoint_t {
    int rank; /**< world rank */
    int device;
} ompx_endpoint_t;

/** Collective over the listed ranks only. The caller must be in the list; no rank twice. */
OMPX_API_ int ompx_group_create(ompx_group_t *group, const int *ranks, int size) OMPX_NOEXCEPT_;
/**
 * Of endpoints: collective over the ranks in the list only, all of which pass the same list. The
 * caller must be in it; no endpoint twice. Whether a device exists is found out by the first call
 * that uses it. DiOMP 2025, groups.
 */
OMPX_API_ int ompx_group_create_endpoints(ompx_group_t *group, const ompx_endpoint_t *endpoints,
                                          int size) OMPX_NOEXCEPT_;
/**
 * Of all devices that the members of `ranks`, a group of ranks, drive (ompx_get_rank_device()):
 * collective over it. In the order of the ranks, then of each rank's list. A rank that drives none
 * is not in the group and gets OMPX_GROUP_NONE.
 */
OMPX_API_ int ompx_group_create_devices(ompx_group_t ranks, ompx_group_t *result) OMPX_NOEXCEPT_;
/** Collective over `group`. Members with equal color form a group, ordered by key, then by their
 * number. A rank with several endpoints gives all of them the same color and key. A negative color
 * takes part and gets OMPX_GROUP_NONE. */
OMPX_API_ int ompx_group_split(ompx_group_t group, int color, int key,
                               ompx_group_t *result) OMPX_NOEXCEPT_;
/** The same with a color and a key for each of the caller's endpoints, in the group's order, and
 * as many results. Endpoints of equal color get the same handle, to be freed once. */
OMPX_API_ int ompx_group_split_endpoints(ompx_group_t group, const int *colors, const int *keys,
                                         ompx_group_t *results) OMPX_NOEXCEPT_;
/** Collective over the union of a and b: members of a, then those of b not in a. A rank outside one
 * of them passes OMPX_GROUP_NONE for it; at least one rank must be in both. Both have ranks or both
 * have endpoints. */
OMPX_API_ int ompx_group_merge(ompx_group_t a, ompx_group_t b, ompx_group_t *result) OMPX_NOEXCEPT_;
/** Collective over the group: another one of the same members, for calls that may overtake. */
OMPX_API_ int ompx_group_dup(ompx_group_t group, ompx_group_t *result) OMPX_NOEXCEPT_;
/** Collective over the group; sets *group to OMPX_GROUP_NONE. The world cannot be freed. */
OMPX_API_ int ompx_group_free(ompx_group_t *group) OMPX_NOEXCEPT_;
/** No group: what a rank outside gets. Every call with it, except merge, is an error. */
#define OMPX_GROUP_NONE ((ompx_group_t)(intptr_t)-1)
/** Number of members; or this rank's place in the group, with several endpoints its first one's
 * (negative status if it is not a member). */
OMPX_API_ int ompx_group_size(ompx_group_t group) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_group_rank(ompx_group_t group) OMPX_NOEXCEPT_;
/** World rank of a member. */
OMPX_API_ int ompx_group_world_rank(ompx_group_t group, int member) OMPX_NOEXCEPT_;
/** Number of the caller's endpoints in a group of endpoints; 0 for a group of ranks. */
OMPX_API_ int ompx_group_num_own_endpoints(ompx_group_t group) OMPX_NOEXCEPT_;
/** A member of a group of endpoints (OMPX_ERR_ARG for a group of ranks). */
OMPX_API_ int ompx_group_endpoint(ompx_group_t group, int member,
                                  ompx_endpoint_t *endpoint) OMPX_NOEXCEPT_;
/**
 * What the members `members[count]` of `from` are called in `to`: results[i] is OMPX_NO_MEMBER if
 * one is not in it. Between ranks and endpoints: a rank is called by its first endpoint, and an
 * endpoint by its rank. Local. As MPI_Group_translate_ranks (MPI 4.0, 7.3.1).
 */
OMPX_API_ int ompx_group_translate(ompx_group_t from, const int *members, int count,
                                   ompx_group_t to, int *results) OMPX_NOEXCEPT_;
#define OMPX_NO_MEMBER (-1)

#endif /* DIOMP_GROUP_H */
