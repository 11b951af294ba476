// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions over several nodes: the operands of a node are combined by the call for one node, the
// results of the nodes by their speakers, in the order of the nodes.
#include "collective/spanning_blocks.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace diomp::collective {
namespace {

using sync::operation;

// The tree of reduce_small_far in spanning.cpp, after agreement.
status reduce_far(spanning_call &call, std::byte *data, std::size_t count, std::byte *heard) {
    group::bridge &across = call.across;
    std::size_t const nbytes = count * call.unit_bytes;
    std::size_t const num = call.num_nodes();
    std::size_t const root_node = call.layout().node(call.root());
    std::size_t const base = call.reduce.commutative ? root_node : 0;
    std::size_t const number = (call.own_node() + num - base) % num;
    auto const speaker = [&](std::size_t node) { return across.speaker_of((node + base) % num); };
    {
        stream letters(call);
        for (std::size_t bit = 1; bit < num; bit *= 2) {
            if ((number & bit) != 0) {
                DIOMP_TRY(letters.send(speaker(number - bit), {data, nbytes}));
                DIOMP_TRY(letters.finish());
                break;
            }
            if (number + bit < num) {
                letters.expect(speaker(number + bit), {heard, nbytes});
                DIOMP_TRY(letters.await_all());
                call.reduce.apply(data, data, heard, count);
            }
        }
    }
    stream letters(call);
    if (base != root_node && number == 0) {
        DIOMP_TRY(letters.send(call.root(), {data, nbytes}));
        return letters.finish();
    }
    if (base != root_node && call.is_root()) {
        letters.expect(across.speaker_of(base), {data, nbytes});
        return letters.await_all();
    }
    return {};
}

} // namespace

// The operands of all members, combined one by one. Reads a piece of every operand before the
// result overwrites it.
status reduce_in_rank_order(spanning_call &call, const std::byte *src, bool wants_result) {
    std::size_t const n = call.num_members;
    std::size_t const unit = call.unit_bytes;
    chunking const pieces = cut_blocks(call, 2 * n + 1);
    std::size_t const piece_bytes = round_up(pieces.chunk * unit);
    std::byte *const operands = call.across.scratch((2 * n + 1) * piece_bytes);
    for (std::size_t i = 0; i < pieces.num_chunks(); ++i) {
        range const piece = pieces[i];
        std::size_t const nbytes = piece.count * unit;
        DIOMP_TRY(allgather_piece(call, operands, src + piece.begin * unit, nbytes,
                                  operands + n * piece_bytes));
        if (wants_result) {
            reduce_blocks(call, call.dst() + piece.begin * unit, n, piece.count,
                          [&](std::size_t member) -> const std::byte * {
                              return operands + member * nbytes;
                          });
        }
    }
    return {};
}

status spanning_reduce(spanning_call &call) {
    if (call.needs_rank_order()) {
        return reduce_in_rank_order(call, call.src(), call.is_root());
    }
    group::bridge &across = call.across;
    chunking const pieces = cut_operand(call);
    std::size_t const stride = round_up(pieces.chunk * call.unit_bytes);
    std::byte *const partial = across.speaks() ? across.scratch(2 * stride) : nullptr;
    for (std::size_t i = 0; i < pieces.num_chunks(); ++i) {
        range const piece = pieces[i];
        std::size_t const at = piece.begin * call.unit_bytes;
        DIOMP_TRY(call.run_near(operation::reduce, partial, call.src() + at, piece.count,
                                call.speaker_place()));
        if (!across.speaks()) {
            call.phase += 2;
            continue;
        }
        DIOMP_TRY(reduce_far(call, partial, piece.count, partial + stride));
        if (call.is_root()) {
            std::memcpy(call.dst() + at, partial, piece.count * call.unit_bytes);
        }
    }
    return {};
}

// The pieces of all blocks, ordered by node, are reduced on each node; a leader gets from the
// others what they have for its node.
status spanning_reduce_scatter(spanning_call &call) {
    if (call.needs_rank_order()) {
        // In place the result overwrites block 0, which is reduced first.
        for (std::size_t member = 0; member < call.num_members; ++member) {
            DIOMP_TRY(reduce_in_rank_order(call, call.src() + member * call.block_bytes(),
                                           member == call.self));
        }
        return {};
    }
    group::bridge &across = call.across;
    const group::node_layout &layout = call.layout();
    std::size_t const n = call.num_members;
    std::size_t const unit = call.unit_bytes;
    std::size_t const num = call.num_nodes();
    std::size_t const num_here = call.num_here();
    std::vector<std::size_t> first(num + 1);
    std::vector<std::uint32_t> order;
    for (std::size_t node = 0; node < num; ++node) {
        auto const members = layout.members_of(node);
        order.insert(order.end(), members.begin(), members.end());
        first[node + 1] = order.size();
    }
    // The same on all nodes, since the pieces have to be.
    std::size_t const most_here = std::ranges::max(layout.sizes);
    std::size_t const blocks = 2 * n + (num + 1) * most_here;
    chunking const pieces = cut_blocks(call, blocks);
    std::size_t const most = pieces.chunk * unit;
    std::byte *const packed = across.scratch((blocks + 4) * round_up(most));
    std::byte *const partial = packed + round_up(n * most);
    std::byte *const heard = partial + round_up(n * most);
    for (std::size_t i = 0; i < pieces.num_chunks(); ++i) {
        range const piece = pieces[i];
        std::size_t const nbytes = piece.count * unit;
        for (std::size_t block = 0; block < n; ++block) {
            std::memcpy(packed + block * nbytes,
                        call.src() + order[block] * call.block_bytes() + piece.begin * unit,
                        nbytes);
        }
        DIOMP_TRY(call.run_near(operation::reduce, partial, packed, n * piece.count, 0));
        std::size_t const stride = round_up(num_here * nbytes);
        std::byte *const own = partial + first[call.own_node()] * nbytes;
        stream letters(call);
        for (std::size_t node = 0; across.is_leader() && node < num; ++node) {
            if (node != call.own_node()) {
                letters.expect(layout.leaders[node], {heard + node * stride, num_here * nbytes});
            }
        }
        for (std::size_t step = 1; across.is_leader() && step < num; ++step) {
            std::size_t const node = (call.own_node() + step) % num;
            DIOMP_TRY(letters.send(layout.leaders[node],
                                   {partial + first[node] * nbytes, layout.sizes[node] * nbytes}));
        }
        if (across.is_leader()) {
            DIOMP_TRY(letters.await_all());
            DIOMP_TRY(letters.finish());
            reduce_blocks(call, own, num, num_here * piece.count,
                          [&](std::size_t node) -> const std::byte * {
                              return node == call.own_node() ? own : heard + node * stride;
                          });
        }
        DIOMP_TRY(
            call.run_near(operation::scatter, call.dst() + piece.begin * unit, own, nbytes, 0));
    }
    return {};
}

} // namespace diomp::collective
