// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions over several nodes: the operands of a node are combined by the call for one node, the
// results of the nodes by their speakers, in the order of the nodes.
#include "collective/spanning.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace diomp::collective {
namespace {

using sync::operation;

/// A reduction goes through so much of its operand at a time.
constexpr std::size_t reduce_piece_bytes = std::size_t{1} << 20;
/// From here on each node reduces a part for all; below, all reduce all.
constexpr std::size_t split_from_bytes = std::size_t{128} << 10;
/// Operands pass through the first-level cache together.
constexpr std::size_t cache_block_bytes = 4096;

chunking cut_operand(const spanning_call &call, std::size_t operands_aside) {
    std::size_t const wanted = std::min(
        reduce_piece_bytes, 4 * reduce_piece_bytes / std::max<std::size_t>(1, operands_aside));
    std::size_t const fitting = wanted / call.unit_bytes;
    std::size_t const lines = fitting / cache_line_bytes * cache_line_bytes;
    return {call.asked.amount, std::max<std::size_t>(1, lines > 0 ? lines : fitting)};
}

std::size_t round_up(std::size_t nbytes) {
    return (nbytes + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
}

/// out = operand(0) op ... op operand(n - 1) where out may be any of them.
template <typename Operand>
void reduce_blocks(const spanning_call &call, std::byte *out, std::size_t num_operands,
                   std::size_t count, Operand &&operand) {
    std::size_t const step = std::max<std::size_t>(1, cache_block_bytes / call.unit_bytes);
    std::vector<std::byte> memory(step * call.unit_bytes + cache_line_bytes);
    auto const address = reinterpret_cast<std::uintptr_t>(memory.data());
    std::byte *const aside =
        memory.data() + (cache_line_bytes - address % cache_line_bytes) % cache_line_bytes;
    for (std::size_t first = 0; first < count; first += step) {
        std::size_t const n = std::min(step, count - first);
        std::size_t const at = first * call.unit_bytes;
        reduce_in_order(call.reduce, aside, num_operands, n,
                        [&](std::size_t i) { return operand(i) + at; });
        std::memcpy(out + at, aside, n * call.unit_bytes);
    }
}

// As exchange_small in spanning.cpp, after agreement.
status double_recursively(spanning_call &call, std::byte *data, std::size_t count,
                          std::byte *heard) {
    std::size_t const nbytes = count * call.unit_bytes;
    std::size_t const num = call.num_nodes();
    std::size_t const own = call.own_node();
    std::size_t const num_doubling = std::bit_floor(num);
    std::size_t const num_folded = num - num_doubling;
    bool const folds = own < 2 * num_folded;
    bool const is_folded = folds && own % 2 == 1;
    const auto &leaders = call.layout().leaders;
    {
        stream letters(call);
        if (is_folded) {
            DIOMP_TRY(letters.send(leaders[own - 1], {data, nbytes}));
            DIOMP_TRY(letters.finish());
        } else if (folds) {
            letters.expect(leaders[own + 1], {heard, nbytes});
            DIOMP_TRY(letters.await_all());
            call.reduce.apply(data, data, heard, count);
        }
    }
    std::size_t const number = folds ? own / 2 : own - num_folded;
    for (std::size_t bit = 1; bit < num_doubling; bit *= 2) {
        stream letters(call);
        if (is_folded) {
            continue;
        }
        std::size_t const other = number ^ bit;
        std::size_t const partner = other < num_folded ? 2 * other : other + num_folded;
        letters.expect(leaders[partner], {heard, nbytes});
        DIOMP_TRY(letters.send(leaders[partner], {data, nbytes}));
        DIOMP_TRY(letters.await_all());
        DIOMP_TRY(letters.finish());
        if (partner > own) {
            call.reduce.apply(data, data, heard, count);
        } else {
            call.reduce.apply(heard, heard, data, count);
            std::memcpy(data, heard, nbytes);
        }
    }
    stream letters(call);
    if (is_folded) {
        letters.expect(leaders[own - 1], {data, nbytes});
        return letters.await_all();
    }
    if (folds) {
        DIOMP_TRY(letters.send(leaders[own + 1], {data, nbytes}));
    }
    return letters.finish();
}

// Each node reduces one part of the data. It gets that part from all others letter by letter,
// combines each letter when it is there, and sends the result at once.
status split_among_nodes(spanning_call &call, std::byte *data, std::size_t count,
                         std::byte *aside) {
    std::size_t const num = call.num_nodes();
    std::size_t const own = call.own_node();
    std::size_t const unit = call.unit_bytes;
    const auto &leaders = call.layout().leaders;
    std::size_t const grain = std::max<std::size_t>(1, cache_line_bytes / unit);
    auto const part_of = [&](std::size_t node) {
        range const part = share_of(count, num, node, grain);
        return std::span(data + part.begin * unit, part.count * unit);
    };
    std::span<std::byte> const mine = part_of(own);
    std::size_t const stride = round_up(mine.size());
    stream operands(call);
    stream results(call);
    std::vector<std::size_t> first_operand(num);
    for (std::size_t i = 1; i < num; ++i) {
        std::size_t const node = (own + i) % num;
        first_operand[node] = operands.expect(leaders[node], {aside + node * stride, mine.size()});
        results.expect(leaders[node], part_of(node));
    }
    // Letters of all streams in turn, so that nobody waits for its first one long.
    std::size_t const most = stream::num_letters(part_of(0).size() + 2 * grain * unit);
    for (std::size_t letter = 0; letter < most; ++letter) {
        for (std::size_t i = 1; i < num; ++i) {
            std::size_t const node = (own + i) % num;
            if (letter < stream::num_letters(part_of(node).size())) {
                DIOMP_TRY(operands.send_letter(leaders[node], part_of(node), letter));
            }
        }
    }
    std::size_t const elements = stream::letter_bytes / unit;
    for (std::size_t letter = 0; letter < stream::num_letters(mine.size()); ++letter) {
        for (std::size_t node = 0; node < num; ++node) {
            if (node != own) {
                DIOMP_TRY(operands.await(first_operand[node] + letter));
            }
        }
        std::size_t const at = letter * stream::letter_bytes;
        std::size_t const n = std::min(elements, (mine.size() - at) / unit);
        reduce_blocks(call, mine.data() + at, num, n, [&](std::size_t node) -> const std::byte * {
            return (node == own ? mine.data() : aside + node * stride) + at;
        });
        for (std::size_t i = 1; i < num; ++i) {
            DIOMP_TRY(results.send_letter(leaders[(own + i) % num], mine, letter));
        }
    }
    DIOMP_TRY(results.await_all());
    return results.finish();
}

/// Letters of a split hold whole elements.
bool may_split(const spanning_call &call, std::size_t nbytes) {
    return nbytes >= split_from_bytes && stream::letter_bytes % call.unit_bytes == 0;
}

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

status spanning_reduce(spanning_call &call) {
    if (call.needs_rank_order()) {
        return reduce_in_rank_order(call, call.src(), call.is_root());
    }
    group::bridge &across = call.across;
    chunking const pieces = cut_operand(call, 2);
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

// In dst of the leaders.
status spanning_allreduce(spanning_call &call) {
    if (call.needs_rank_order()) {
        return reduce_in_rank_order(call, call.src(), true);
    }
    group::bridge &across = call.across;
    chunking const pieces = cut_operand(call, 1);
    std::size_t const nbytes = std::min(pieces.chunk, pieces.total) * call.unit_bytes;
    std::byte *const aside =
        across.is_leader() ? across.scratch(nbytes * 2 + 2 * cache_line_bytes * call.num_nodes())
                           : nullptr;
    for (std::size_t i = 0; i < pieces.num_chunks(); ++i) {
        range const piece = pieces[i];
        std::size_t const at = piece.begin * call.unit_bytes;
        std::byte *const data = call.dst() + at;
        DIOMP_TRY(call.run_near(operation::reduce, data, call.src() + at, piece.count, 0));
        if (across.is_leader()) {
            DIOMP_TRY(may_split(call, nbytes) ? split_among_nodes(call, data, piece.count, aside)
                                              : double_recursively(call, data, piece.count, aside));
        }
        DIOMP_TRY(call.run_near(operation::bcast, data, nullptr, piece.count * call.unit_bytes, 0));
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
