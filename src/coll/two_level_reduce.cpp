// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two-level reductions: the intra-node call combines the operands of a node; the call leaders
// combine the results of the nodes, in the order of the nodes.
#include "coll/internal/two_level_blocks.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace diomp::coll {
namespace {

using sync::operation;

// Uses the tree of reduce_small_inter_node in two_level.cpp, after the agreement.
status reduce_inter_node(two_level_call &call, std::byte *data, std::size_t count,
                         std::byte *received) {
    const group::current_call &current = call.internode.current();
    std::size_t const nbytes = count * call.unit_bytes;
    std::size_t const num = call.num_nodes();
    std::size_t const root_node = call.layout().node(call.root());
    std::size_t const base = call.reduce.commutative ? root_node : 0;
    std::size_t const number = (call.own_node() + num - base) % num;
    auto const call_leader = [&](std::size_t node) {
        return current.call_leader_of((node + base) % num);
    };
    {
        message_stream messages(call);
        for (std::size_t bit = 1; bit < num; bit *= 2) {
            if ((number & bit) != 0) {
                DIOMP_TRY(messages.send(call_leader(number - bit), {data, nbytes}));
                DIOMP_TRY(messages.finish());
                break;
            }
            if (number + bit < num) {
                messages.post_recv(call_leader(number + bit), {received, nbytes});
                DIOMP_TRY(messages.wait_all_received());
                call.reduce.apply(data, data, received, count);
            }
        }
    }
    message_stream messages(call);
    if (base != root_node && number == 0) {
        DIOMP_TRY(messages.send(call.root(), {data, nbytes}));
        return messages.finish();
    }
    if (base != root_node && call.is_root()) {
        messages.post_recv(current.call_leader_of(base), {data, nbytes});
        return messages.wait_all_received();
    }
    return {};
}

} // namespace

// Reads a chunk of every operand before the result overwrites it.
status reduce_in_rank_order(two_level_call &call, const std::byte *src, bool needs_result) {
    std::size_t const n = call.num_members;
    std::size_t const unit = call.unit_bytes;
    chunking const chunks = chunk_blocks(call, 2 * n + 1);
    std::size_t const chunk_bytes = round_up(chunks.chunk * unit);
    std::byte *const operands = call.internode.channel().scratch((2 * n + 1) * chunk_bytes);
    for (std::size_t i = 0; i < chunks.num_chunks(); ++i) {
        range const chunk = chunks[i];
        std::size_t const nbytes = chunk.count * unit;
        DIOMP_TRY(allgather_chunk(call, operands, src + chunk.begin * unit, nbytes,
                                  operands + n * chunk_bytes));
        if (needs_result) {
            reduce_blocks(call, call.dst() + chunk.begin * unit, n, chunk.count,
                          [&](std::size_t member) -> const std::byte * {
                              return operands + member * nbytes;
                          });
        }
    }
    return {};
}

status two_level_reduce(two_level_call &call) {
    if (call.needs_rank_order()) {
        return reduce_in_rank_order(call, call.src(), call.is_root());
    }
    const group::current_call &current = call.internode.current();
    chunking const chunks = chunk_operand(call);
    std::size_t const stride = round_up(chunks.chunk * call.unit_bytes);
    std::byte *const partial =
        current.is_call_leader() ? call.internode.channel().scratch(2 * stride) : nullptr;
    for (std::size_t i = 0; i < chunks.num_chunks(); ++i) {
        range const chunk = chunks[i];
        std::size_t const at = chunk.begin * call.unit_bytes;
        DIOMP_TRY(call.run_intra_node(operation::reduce, partial, call.src() + at, chunk.count,
                                      call.call_leader_index()));
        if (!current.is_call_leader()) {
            call.phase += 2;
            continue;
        }
        DIOMP_TRY(reduce_inter_node(call, partial, chunk.count, partial + stride));
        if (call.is_root()) {
            std::memcpy(call.dst() + at, partial, chunk.count * call.unit_bytes);
        }
    }
    return {};
}

// Each node reduces the chunks of all blocks, ordered by node; a leader receives from the other
// leaders the results for its node.
status two_level_reduce_scatter(two_level_call &call) {
    if (call.needs_rank_order()) {
        // In place the result overwrites block 0, which is reduced first.
        for (std::size_t member = 0; member < call.num_members; ++member) {
            DIOMP_TRY(reduce_in_rank_order(call, call.src() + member * call.block_bytes(),
                                           member == call.self));
        }
        return {};
    }
    const group::node_layout &layout = call.layout();
    std::size_t const n = call.num_members;
    std::size_t const unit = call.unit_bytes;
    std::size_t const num = call.num_nodes();
    std::size_t const num_local = call.num_local();
    std::vector<std::size_t> first(num + 1);
    std::vector<std::uint32_t> order;
    for (std::size_t node = 0; node < num; ++node) {
        auto const members = layout.members_of(node);
        order.insert(order.end(), members.begin(), members.end());
        first[node + 1] = order.size();
    }
    // Equal on all nodes, since the chunks must be equal.
    std::size_t const max_local = std::ranges::max(layout.sizes);
    std::size_t const blocks = 2 * n + (num + 1) * max_local;
    chunking const chunks = chunk_blocks(call, blocks);
    std::size_t const max_count = chunks.chunk * unit;
    std::byte *const packed = call.internode.channel().scratch((blocks + 4) * round_up(max_count));
    std::byte *const partial = packed + round_up(n * max_count);
    std::byte *const received = partial + round_up(n * max_count);
    for (std::size_t i = 0; i < chunks.num_chunks(); ++i) {
        range const chunk = chunks[i];
        std::size_t const nbytes = chunk.count * unit;
        for (std::size_t block = 0; block < n; ++block) {
            std::memcpy(packed + block * nbytes,
                        call.src() + order[block] * call.block_bytes() + chunk.begin * unit,
                        nbytes);
        }
        DIOMP_TRY(call.run_intra_node(operation::reduce, partial, packed, n * chunk.count, 0));
        std::size_t const stride = round_up(num_local * nbytes);
        std::byte *const own = partial + first[call.own_node()] * nbytes;
        message_stream messages(call);
        for (std::size_t node = 0; call.layout().is_leader() && node < num; ++node) {
            if (node != call.own_node()) {
                messages.post_recv(layout.leaders[node],
                                   {received + node * stride, num_local * nbytes});
            }
        }
        for (std::size_t step = 1; call.layout().is_leader() && step < num; ++step) {
            std::size_t const node = (call.own_node() + step) % num;
            DIOMP_TRY(messages.send(layout.leaders[node],
                                    {partial + first[node] * nbytes, layout.sizes[node] * nbytes}));
        }
        if (call.layout().is_leader()) {
            DIOMP_TRY(messages.wait_all_received());
            DIOMP_TRY(messages.finish());
            reduce_blocks(call, own, num, num_local * chunk.count,
                          [&](std::size_t node) -> const std::byte * {
                              return node == call.own_node() ? own : received + node * stride;
                          });
        }
        DIOMP_TRY(call.run_intra_node(operation::scatter, call.dst() + chunk.begin * unit, own,
                                      nbytes, 0));
    }
    return {};
}

} // namespace diomp::coll
