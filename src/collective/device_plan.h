// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives of members whose devices reach each other's memory: what one member's device does.
// It is work for one stream, which waits for no other member: whoever uses it sees that all have
// entered the call before, and leaves it when all have done their part. Some calls in place have
// phases, between which all wait for all.
//
//  bcast, scatter(v)    each copies its part from the root
//  gather(v), allgather each copies its block to those who want it
//  alltoall(v),
//  allgatherv           each copies its block from everybody
//  reduce, allreduce    each reduces a share of all operands, and copies it to all others
//  reduce_scatter       each reduces its block. In place results lie where member 0's operands do:
//                       first each reduces a share of block 0, then the others their blocks
//  scan, exscan         each reduces a share of all results, one after the other
//  alltoall in place    one device of each pair exchanges their blocks, by way of a piece aside
#pragma once

#include "collective/collective.h"

#include <cstddef>
#include <span>
#include <vector>

namespace diomp::collective {

/// A member's buffers where the device that works has them; null if the call does not use them.
struct device_buffers {
    std::byte *dst = nullptr;
    const std::byte *src = nullptr;
    /// Bytes before the block of the member whose device works: of a gatherv in the root's dst, of
    /// a scatterv in the root's src, of an alltoallv in every src.
    std::size_t before = 0;
};

struct device_copy {
    std::byte *dst = nullptr;
    const std::byte *src = nullptr;
    std::size_t nbytes = 0;
};

struct device_reduction {
    std::byte *to = nullptr;
    std::vector<const void *> operands;
    std::size_t count = 0; ///< elements of each
};

/// In this order.
struct device_plan {
    std::vector<device_reduction> reductions;
    std::vector<device_copy> copies;
};

/// Whether there are plans for the call, given buffers that are fit for it and devices that reduce.
/// The same on all members.
bool has_device_plan(const request &asked);
/// Bytes of the largest block that a member sends, reduces or receives; of an alltoallv those that
/// this member receives, of the others the same on all.
std::size_t largest_block(const request &asked);
/// Whether one member's buffers are: they do not overlap, or in a way that nobody overwrites what
/// another still reads. `own` has its addresses, wherever; `asked` the member's own lists.
bool fits_device_plan(const request &asked, const device_buffers &own, const buffer_use &use,
                      std::size_t member);
/// Whether the plans need a piece of the device's memory. `all`: [member], wherever, but each
/// member's two in the same place.
bool needs_piece_aside(const request &asked, std::span<const device_buffers> all);
/// [phase], equally many on all members. `all`: [member]; `asked` has the own lists of the member
/// that works.
std::vector<device_plan> make_device_plans(const request &asked,
                                           std::span<const device_buffers> all, std::size_t member,
                                           std::span<std::byte> aside = {});

} // namespace diomp::collective
