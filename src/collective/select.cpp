// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/select.h"

#include "sync/rendezvous.h"

#include <algorithm>

namespace diomp::collective {
namespace {

using sync::operation;

/// Between two members both read everything, at every size: half of the operands comes from the own
/// cache, and there is one phase less. With more, each reduces a part from here on.
constexpr std::size_t split_from_bytes = std::size_t{32} << 10;
/// A reduce to one member is worth splitting only if the others have cores to help with.
constexpr std::size_t split_reduce_from_bytes = std::size_t{256} << 10;
/// Moves overlap writing and reading, so they want several chunks; below this size the meetings
/// cost more than the overlap saves (docs/collectives.md has the measurements).
constexpr std::size_t smallest_chunk_bytes = std::size_t{32} << 10;
constexpr std::size_t chunks_per_move = 8;

/// Blocks that one member has in its stage at a time: one for all, or one for each of the others.
std::size_t blocks_per_stage(const call_shape &shape) {
    bool const each = shape.what == operation::scatter || shape.what == operation::alltoall ||
                      shape.what == operation::reduce_scatter;
    return each ? std::max<std::size_t>(1, shape.num_members - 1) : 1;
}

/// Bytes that travel beside a line if the call is tiny; those of a scatter include the root's.
std::size_t tiny_bytes(const call_shape &shape) {
    return shape.block_bytes * (shape.what == operation::scatter ? shape.num_members : 1);
}

} // namespace

plan select(const call_shape &shape) {
    plan made;
    if (shape.block_bytes == 0 || shape.what == operation::barrier) {
        return made;
    }
    bool const has_tiny_form =
        shape.what != operation::alltoall && shape.what != operation::reduce_scatter;
    if (has_tiny_form && tiny_bytes(shape) <= sync::rendezvous::wide_bytes &&
        !shape.user_operator && !shape.needs_alignment) {
        made.how = algorithm::tiny;
        return made;
    }
    std::size_t const stage_bytes = shape.block_bytes * blocks_per_stage(shape);
    made.grow_stages = stage_bytes > group::local_group::still_bytes;
    made.try_direct = shape.block_bytes >= direct_from_bytes;
    made.chunk_bytes = large_stage_bytes;
    if (!is_reduction(shape.what)) {
        made.how = algorithm::move;
        if (!shape.oversubscribed) {
            made.chunk_bytes =
                std::clamp(stage_bytes / chunks_per_move, smallest_chunk_bytes, large_stage_bytes);
        }
        return made;
    }
    bool const split_allreduce = shape.what == operation::allreduce && shape.num_members > 2 &&
                                 shape.block_bytes >= split_from_bytes;
    bool const split_reduce = shape.what == operation::reduce && shape.num_members > 2 &&
                              !shape.oversubscribed && shape.block_bytes >= split_reduce_from_bytes;
    made.how = split_allreduce || split_reduce ? algorithm::split : algorithm::exchange;
    return made;
}

std::size_t stage_elements(algorithm how, const call_shape &shape, std::size_t wanted_bytes,
                           std::size_t stage_bytes, std::size_t unit_bytes) {
    auto const elements_in = [&](std::size_t nbytes) {
        if (how == algorithm::split) {
            // Operands, a line for rounding, and the largest part of the result.
            std::size_t const lines = 2 * cache_line_bytes + unit_bytes;
            std::size_t const room = nbytes > lines ? nbytes - lines : 0;
            return room * shape.num_members / (shape.num_members + 1) / unit_bytes;
        }
        return nbytes / blocks_per_stage(shape) / unit_bytes;
    };
    std::size_t const most = elements_in(stage_bytes);
    std::size_t const wanted = std::max<std::size_t>(1, elements_in(wanted_bytes));
    return std::min(wanted, most);
}

std::size_t staged_bytes(algorithm how, const call_shape &shape, std::size_t elements,
                         std::size_t unit_bytes) {
    std::size_t const operands = elements * blocks_per_stage(shape) * unit_bytes;
    if (how != algorithm::split) {
        return operands;
    }
    std::size_t const grain = std::max<std::size_t>(1, cache_line_bytes / unit_bytes);
    std::size_t const part = elements / shape.num_members + 2 * grain;
    return operands + cache_line_bytes + part * unit_bytes;
}

} // namespace diomp::collective
