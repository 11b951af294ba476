// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the reductions over several nodes share.
#pragma once

#include "collective/spanning.h"

#include <algorithm>
#include <cstring>

namespace diomp::collective {

/// A reduction goes through so much of its operand at a time.
constexpr std::size_t reduce_piece_bytes = std::size_t{1} << 20;

inline chunking cut_operand(const spanning_call &call) {
    std::size_t const fitting = reduce_piece_bytes / call.unit_bytes;
    std::size_t const lines = fitting / cache_line_bytes * cache_line_bytes;
    return {call.asked.amount, std::max<std::size_t>(1, lines > 0 ? lines : fitting)};
}

inline std::size_t round_up(std::size_t nbytes) {
    return (nbytes + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
}

/// out = operand(0) op ... op operand(n - 1) where out may be any of them.
template <typename Operand>
void reduce_blocks(const spanning_call &call, std::byte *out, std::size_t num_operands,
                   std::size_t count, Operand &&operand) {
    piece_buffer const aside(call.unit_bytes);
    for (std::size_t first = 0; first < count; first += aside.elements()) {
        std::size_t const n = std::min(aside.elements(), count - first);
        std::size_t const at = first * call.unit_bytes;
        reduce_in_order(call.reduce, aside.data(), num_operands, n,
                        [&](std::size_t i) { return operand(i) + at; });
        std::memcpy(out + at, aside.data(), n * call.unit_bytes);
    }
}

/// The operands of all members, combined one by one, into dst where it is wanted. Reads a piece of
/// every operand before the result overwrites it.
status reduce_in_rank_order(spanning_call &call, const std::byte *src, bool wants_result);

} // namespace diomp::collective
