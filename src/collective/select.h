// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which algorithm runs: the only place that knows sizes.
//
//  n members, b bytes per member (for bcast, reduce, allreduce: of the whole buffer); a meeting is
//  one step and n lines. "copied" counts bytes through the busiest member.
//
//  algorithm   when                              meetings         copied
//  tiny        b <= 256, not alltoall and such   1                b n, with the lines
//  move        bcast, gather, scatter,           chunks           bcast 2 b, gather and scatter
//              allgather, alltoall                                b n, the others 2 b n
//  exchange    reductions: all read all          chunks           b (n + 1)
//  split       reduce, allreduce, large or many  chunks + 1       b (3 - 1/n)
//              members: each reduces a part
//  direct      large, buffers in the window      2                one copy: bcast b, gather b n,
//                                                                 allreduce b (1 + 1/n)
#pragma once

#include "collective/collective.h"

#include <cstddef>

namespace diomp::collective {

enum class algorithm { nothing, tiny, move, exchange, split };

/// Same on all members, since it depends on what the signature holds and on the group only.
struct plan {
    algorithm how = algorithm::nothing;
    bool try_direct = false;     ///< tell the buffers' addresses first
    bool grow_stages = false;    ///< the small stage is too small to be fast
    std::size_t chunk_bytes = 0; ///< of stage per chunk, at most the stage's size
};

struct call_shape {
    sync::operation what = sync::operation::barrier;
    std::size_t num_members = 1;
    std::size_t block_bytes = 0; ///< of one member's block
    bool user_operator = false;
    bool needs_alignment = false; ///< elements that may not lie at a multiple of 8
    bool oversubscribed = false;
};

plan select(const call_shape &shape);

/// Elements of `unit_bytes` per chunk: as many as fit into about `wanted_bytes`, but at least one
/// if the stage holds one; 0 if it does not.
std::size_t stage_elements(algorithm how, const call_shape &shape, std::size_t wanted_bytes,
                           std::size_t stage_bytes, std::size_t unit_bytes);

/// Of the stage that a chunk of so many elements takes, or somewhat more.
std::size_t staged_bytes(algorithm how, const call_shape &shape, std::size_t elements,
                         std::size_t unit_bytes);

/// From here on, the addresses of the buffers are worth a meeting of their own.
inline constexpr std::size_t direct_from_bytes = std::size_t{32} << 10;

/// Bytes of a stage once it has grown; two per member.
inline constexpr std::size_t large_stage_bytes = std::size_t{256} << 10;

} // namespace diomp::collective
