// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A collective call as the vendors' libraries get it, and which calls they can make.
#pragma once

#include "diomp.h"

#include <cstddef>
#include <span>

namespace diomp::collective::vendor {

enum class action {
    bcast,
    reduce,
    allreduce,
    gather,
    scatter,
    allgather,
    reduce_scatter,
    alltoall
};
[[nodiscard]] const char *name_of(action what);

/// What all members say alike, and what decides for all of them whether the library makes the call.
struct call {
    action what = action::bcast;
    /// Per block: elements of `type` where there is one, else bytes. Not used if `sized`.
    std::size_t amount = 0;
    ompx_type_t type = 0; ///< 0 where nothing is combined
    ompx_op_t op = 0;
    int root = -1; ///< member; only for actions that have one
    /// The v forms of gather, scatter, allgather and alltoall: `buffers` has a size for each block.
    bool sized = false;
};

/// Sizes of the blocks of a buffer, by member.
struct block_list {
    std::span<const std::size_t> nbytes;
    std::span<const std::size_t> offsets; ///< bytes from its start; empty: one after the other
};

/// One endpoint's part: addresses on its device, in place as diomp.h says for each call. Read when
/// the call starts; the lists are not needed afterwards, the memory is until the end.
struct buffers {
    void *dst = nullptr; ///< of a bcast the only one
    const void *src = nullptr;
    /// Sized gather, allgather and alltoall. The sizes are needed on every endpoint, the offsets
    /// where dst is.
    block_list dst_blocks;
    block_list src_blocks; ///< sized scatter and alltoall, likewise
};

/// Whether the library has the call with this type and operator: sum, product, minimum, maximum and
/// average of integers of 8, 32 and 64 bits and of floating point up to double; moves of any bytes.
/// Else the native collectives do it. Says the same on all members.
[[nodiscard]] bool can_do(const call &asked);

} // namespace diomp::collective::vendor
