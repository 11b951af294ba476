// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Helpers of the two-level reductions.
#pragma once

#include "coll/internal/two_level.h"

#include <algorithm>
#include <cstring>

namespace diomp::coll {

/// Bytes of operands that the call leader of a node reads alone; of more, all members combine a
/// part.
constexpr std::size_t max_operands_bytes = std::size_t{256} << 10;
/// From this size on each node reduces a partition for all; below, all nodes reduce everything.
constexpr std::size_t scatter_between_nodes_min_bytes = std::size_t{128} << 10;
/// Minimum size of the slices of two_level_allreduce.
constexpr std::size_t min_slice_bytes = std::size_t{32} << 10;

/// Chunk size of a reduction's operand.
constexpr std::size_t reduce_chunk_bytes = std::size_t{1} << 20;

inline chunking chunk_operand(const two_level_call &call) {
    return chunks_of(call, reduce_chunk_bytes);
}

inline std::size_t round_up(std::size_t nbytes) {
    return (nbytes + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
}

/// out = operand(0) op ... op operand(n - 1); out may be one of the operands.
template <typename Operand>
void reduce_blocks(const two_level_call &call, std::byte *out, std::size_t num_operands,
                   std::size_t count, Operand &&operand) {
    cache_block_buffer const scratch(call.unit_bytes);
    for (std::size_t first = 0; first < count; first += scratch.elements()) {
        std::size_t const n = std::min(scratch.elements(), count - first);
        std::size_t const at = first * call.unit_bytes;
        reduce_in_order(call.reduce, scratch.data(), num_operands, n,
                        [&](std::size_t i) { return operand(i) + at; });
        std::memcpy(out + at, scratch.data(), n * call.unit_bytes);
    }
}

/// Combines the operands of all members in rank order, into dst where `needs_result`. Reads a chunk
/// of every operand before the result overwrites it.
status reduce_in_rank_order(two_level_call &call, const std::byte *src, bool needs_result);

} // namespace diomp::coll
