// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives of members whose devices access each other's memory: the work of one member's device.
// It is work for one stream that does not wait for other members: the user of a plan makes sure
// that all members have entered the call before, and leaves it after all have finished. Some
// in-place calls have phases, between which all members wait for each other.
//
//  bcast, scatter(v)    each device copies its block from the root
//  gather(v), allgather each device copies its block to the members that receive it
//  alltoall(v),
//  allgatherv           each device copies its block from all members
//  reduce, allreduce    each device reduces a partition of all operands and copies it to the others
//  reduce_scatter       each device reduces its block. In-place results overwrite member 0's
//                       operands: first each reduces a partition of block 0, then the others their
//                       blocks
//  scan, exscan         each device reduces a partition of all results, one after the other
//  alltoall in place    one device of each pair exchanges their blocks through scratch memory
#pragma once

#include "coll/collective.h"

#include <cstddef>
#include <span>
#include <vector>

namespace diomp::coll {

/// A member's buffers as addresses of the working device; null if the call does not use them.
struct device_buffers {
    std::byte *dst = nullptr;
    const std::byte *src = nullptr;
    /// Offset in bytes of the working member's block: for gatherv in the root's dst, for scatterv
    /// in the root's src, for alltoallv in every src.
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

/// The reductions are done before the copies.
struct device_plan {
    std::vector<device_reduction> reductions;
    std::vector<device_copy> copies;
};

/// Whether plans exist for the call, given suitable buffers and devices that reduce. Equal on all
/// members.
bool has_device_plan(const request &args);
/// Size in bytes of the largest block that a member sends, reduces or receives. Equal on all
/// members, except for alltoallv, where only the blocks that this member receives count.
std::size_t largest_block(const request &args);
/// Whether one member's buffers suit a plan: they do not overlap, or only so that no member
/// overwrites data that another one still reads. `own` has the member's addresses, valid on any
/// device; `args` has the member's own lists.
bool fits_device_plan(const request &args, const device_buffers &own, const buffer_use &use,
                      std::size_t member);
/// Whether the plans need scratch memory on the device. `all`: [member], addresses valid on any
/// device, but both buffers of a member on the same one.
bool needs_scratch(const request &args, std::span<const device_buffers> all);
/// Returns [phase], equally many on all members. `all`: [member]; `args` has the lists of the
/// member whose device works.
std::vector<device_plan> make_device_plans(const request &args, std::span<const device_buffers> all,
                                           std::size_t member, std::span<std::byte> scratch = {});

} // namespace diomp::coll
