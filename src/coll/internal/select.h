// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Selects the algorithm of a call on one node; all size limits are here.
//
//  n members, b bytes per member (for bcast, reduce, allreduce: of the whole buffer); a round of
//  the node barrier is one step that reads n flag slots. "copied" counts bytes of the busiest
//  member.
//
//  algorithm    when                              rounds           copied
//  inline_data  b <= 256, but for user-defined    1                b n, in the flag slots
//               operators; scatter, alltoall and
//               reduce_scatter: b n <= 256
//  staged       bcast, gather, scatter,           chunks           bcast 2 b, gather and scatter
//               allgather, alltoall                                b n, the others 2 b n
//  flat         reductions: all read all          chunks           b (n + 1)
//  reduce_scatter_allgather
//               reduce, allreduce of large data   chunks + 1       b (3 - 1/n)
//               or many members: each member
//               reduces a partition
//  zero-copy    large, buffers in the arena       2                one copy: bcast b, gather b n,
//                                                                  allreduce b (1 + 1/n)
#pragma once

#include "coll/algorithm.h"
#include "coll/collective.h"

#include <cstddef>

namespace diomp::coll {

/// Equal on all members, since it depends on the signature and the group only.
struct plan {
    algorithm method = algorithm::barrier_only;
    bool try_zero_copy = false;      ///< publish the buffers' addresses in the first round
    bool grow_stage_buffers = false; ///< the small stage buffer is too small to be fast
    std::size_t chunk_bytes = 0;     ///< stage buffer bytes per chunk, at most its size
};

struct call_shape {
    sync::operation what = sync::operation::barrier;
    std::size_t num_members = 1;
    std::size_t block_bytes = 0; ///< size of one member's block
    bool user_operator = false;
    bool needs_alignment = false; ///< elements need an alignment of more than 8
    bool oversubscribed = false;
};

/// `source` chooses instead where it has a choice; null: none.
plan select(const call_shape &shape, const algorithm_source *source = nullptr);

/// Elements of `unit_bytes` per chunk: as many as fit into about `wanted_bytes`, but at least one
/// if the stage buffer holds one; else 0.
std::size_t stage_elements(algorithm method, const call_shape &shape, std::size_t wanted_bytes,
                           std::size_t stage_buffer_bytes, std::size_t unit_bytes);

/// Upper bound of the stage buffer bytes that a chunk of `elements` takes.
std::size_t staged_bytes(algorithm method, const call_shape &shape, std::size_t elements,
                         std::size_t unit_bytes);

/// From this size on, publishing the buffers' addresses is worth a barrier round.
inline constexpr std::size_t zero_copy_min_bytes = std::size_t{32} << 10;

/// Size of a stage buffer once it has grown; two per member.
inline constexpr std::size_t large_stage_bytes = std::size_t{256} << 10;

/// Size of the chunks of a staged call of `nbytes` in which every rank has a core: small enough
/// that writing and reading overlap.
std::size_t overlapping_chunk_bytes(std::size_t nbytes);

} // namespace diomp::coll
