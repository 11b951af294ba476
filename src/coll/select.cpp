// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/select.h"

#include "group/group.h"
#include "sync/node_barrier.h"

#include <algorithm>

namespace diomp::coll {
namespace {

using sync::operation;

/// From this size on, each of more than two members reduces a partition. Two members both read all
/// operands at every size: half of them comes from the own cache, and there is one phase less.
constexpr std::size_t reduce_scatter_allgather_min_bytes = std::size_t{32} << 10;
/// Or from this size of all operands on, which else every member reads.
constexpr std::size_t reduce_scatter_allgather_min_operands = std::size_t{128} << 10;
/// Partitioning a reduce pays off only if the other members have cores of their own.
constexpr std::size_t reduce_scatter_gather_min_bytes = std::size_t{256} << 10;

/// Blocks in a member's stage buffer at a time: one for all members, or one for each other member.
std::size_t blocks_per_stage(const call_shape &shape) {
    return has_block_for_each(shape.what) ? std::max<std::size_t>(1, shape.num_members - 1) : 1;
}

/// Inline data of a small call. Blocks for each member include the own block.
std::size_t inline_data_bytes(const call_shape &shape) {
    return shape.block_bytes * (has_block_for_each(shape.what) ? shape.num_members : 1);
}

bool allows_inline_data(const call_shape &shape) {
    return inline_data_bytes(shape) <= sync::node_barrier::max_inline_bytes &&
           !shape.user_operator && !shape.needs_alignment;
}

/// The plan of a call whose data goes through stage buffers, or is read where it lies.
plan select_with_stage_buffers(const call_shape &shape) {
    plan made;
    std::size_t const stage_buffer_bytes = shape.block_bytes * blocks_per_stage(shape);
    made.grow_stage_buffers = stage_buffer_bytes > group::stage_memory::max_fixed_bytes;
    made.try_zero_copy = shape.block_bytes >= zero_copy_min_bytes;
    made.chunk_bytes = large_stage_bytes;
    if (!is_reduction(shape.what)) {
        made.method = algorithm::staged;
        if (!shape.oversubscribed) {
            made.chunk_bytes = overlapping_chunk_bytes(stage_buffer_bytes);
        }
        return made;
    }
    bool const splits_allreduce =
        shape.what == operation::allreduce && shape.num_members > 2 &&
        shape.block_bytes >= std::min(reduce_scatter_allgather_min_bytes,
                                      reduce_scatter_allgather_min_operands / shape.num_members);
    bool const splits_reduce = shape.what == operation::reduce && shape.num_members > 2 &&
                               !shape.oversubscribed &&
                               shape.block_bytes >= reduce_scatter_gather_min_bytes;
    made.method =
        splits_allreduce || splits_reduce ? algorithm::reduce_scatter_allgather : algorithm::flat;
    return made;
}

plan select_built_in(const call_shape &shape) {
    if (!allows_inline_data(shape)) {
        return select_with_stage_buffers(shape);
    }
    plan made;
    made.method = algorithm::inline_data;
    return made;
}

plan make_plan(const call_shape &shape, const algorithm_choice &choice) {
    if (choice.method == algorithm::inline_data) {
        return select_built_in(shape);
    }
    plan made = select_with_stage_buffers(shape);
    made.try_zero_copy = choice.method == algorithm::zero_copy;
    if (!made.try_zero_copy) {
        made.method = choice.method;
    }
    if (choice.chunk_bytes != 0) {
        made.chunk_bytes = choice.chunk_bytes;
    }
    return made;
}

} // namespace

std::size_t overlapping_chunk_bytes(std::size_t nbytes) {
    // Below this size the barriers cost more than the overlap saves (docs/collectives.md).
    constexpr std::size_t smallest_chunk_bytes = std::size_t{32} << 10;
    constexpr std::size_t chunks_per_call = 8;
    return std::clamp(nbytes / chunks_per_call, smallest_chunk_bytes, large_stage_bytes);
}

plan select(const call_shape &shape, const algorithm_source *source) {
    if (shape.block_bytes == 0 || shape.what == operation::barrier) {
        return {};
    }
    if (source != nullptr) [[unlikely]] {
        auto const choice = source->choose(
            {shape.what, network_level::node, shape.num_members, 1, shape.block_bytes});
        if (choice) {
            return make_plan(shape, *choice);
        }
    }
    return select_built_in(shape);
}

std::size_t stage_elements(algorithm method, const call_shape &shape, std::size_t wanted_bytes,
                           std::size_t stage_buffer_bytes, std::size_t unit_bytes) {
    auto const elements_in = [&](std::size_t nbytes) {
        if (method == algorithm::reduce_scatter_allgather) {
            // Operands, a cache line for rounding, and the largest partition of the result.
            std::size_t const lines = 2 * cache_line_bytes + unit_bytes;
            std::size_t const space = nbytes > lines ? nbytes - lines : 0;
            return space * shape.num_members / (shape.num_members + 1) / unit_bytes;
        }
        return nbytes / blocks_per_stage(shape) / unit_bytes;
    };
    std::size_t const max_elements = elements_in(stage_buffer_bytes);
    std::size_t const wanted = std::max<std::size_t>(1, elements_in(wanted_bytes));
    return std::min(wanted, max_elements);
}

std::size_t staged_bytes(algorithm method, const call_shape &shape, std::size_t elements,
                         std::size_t unit_bytes) {
    std::size_t const operands = elements * blocks_per_stage(shape) * unit_bytes;
    if (method != algorithm::reduce_scatter_allgather) {
        return operands;
    }
    std::size_t const alignment = std::max<std::size_t>(1, cache_line_bytes / unit_bytes);
    std::size_t const partition = elements / shape.num_members + 2 * alignment;
    return operands + cache_line_bytes + partition * unit_bytes;
}

} // namespace diomp::coll
