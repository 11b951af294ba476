// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions over several nodes: the operands of a node are combined by the call for one node, the
// results of the nodes by their speakers, in the order of the nodes.
#include "collective/spanning.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace diomp::collective {
namespace {

using sync::operation;

/// A reduction goes through so much of its operand at a time.
constexpr std::size_t reduce_piece_bytes = std::size_t{1} << 20;
/// From here on each node reduces a part for all; below, all reduce all.
constexpr std::size_t part_from_bytes = std::size_t{128} << 10;

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
    piece_buffer const aside(call.unit_bytes);
    for (std::size_t first = 0; first < count; first += aside.elements()) {
        std::size_t const n = std::min(aside.elements(), count - first);
        std::size_t const at = first * call.unit_bytes;
        reduce_in_order(call.reduce, aside.data(), num_operands, n,
                        [&](std::size_t i) { return operand(i) + at; });
        std::memcpy(out + at, aside.data(), n * call.unit_bytes);
    }
}

// What the leaders do in an allreduce. The constructors tell where letters are wanted, in all
// rounds at once and before the data is there, so that nobody waits for that later.

/// As exchange_small in spanning.cpp. In `heard` there is room for num_rounds operands.
class doubling {
public:
    doubling(spanning_call &call, std::byte *data, std::size_t count, std::byte *heard,
             stream::readiness how)
        : call_(call), data_(data), count_(count), nbytes_(count * call.unit_bytes), heard_(heard),
          num_doubling_(std::bit_floor(call.num_nodes())),
          num_folded_(call.num_nodes() - num_doubling_), own_(call.own_node()),
          folds_(own_ < 2 * num_folded_), is_folded_(folds_ && own_ % 2 == 1), fold_(call, how) {
        if (folds_ && !is_folded_) {
            fold_.expect(leader(own_ + 1), {heard_of(0), nbytes_});
        }
        for (std::size_t bit = 1; bit < num_doubling_; bit *= 2) {
            stream &letters = rounds_.emplace_back(call, how);
            if (!is_folded_) {
                letters.expect(leader(partner(bit)), {heard_of(rounds_.size()), nbytes_});
            }
        }
        stream &unfold = rounds_.emplace_back(call, how);
        if (is_folded_) {
            unfold.expect(leader(own_ - 1), {data_, nbytes_});
        }
    }

    static std::size_t num_rounds(std::size_t num_nodes) { return std::bit_width(num_nodes); }

    status run() {
        stream &unfold = rounds_.back();
        if (is_folded_) {
            DIOMP_TRY(fold_.send(leader(own_ - 1), {data_, nbytes_}));
            DIOMP_TRY(fold_.finish());
            return unfold.await_all();
        }
        if (folds_) {
            DIOMP_TRY(fold_.await_all());
            call_.reduce.apply(data_, data_, heard_of(0), count_);
        }
        std::size_t round = 0;
        for (std::size_t bit = 1; bit < num_doubling_; bit *= 2) {
            stream &letters = rounds_[round++];
            DIOMP_TRY(letters.send(leader(partner(bit)), {data_, nbytes_}));
            DIOMP_TRY(letters.await_all());
            DIOMP_TRY(letters.finish());
            std::byte *const theirs = heard_of(round);
            if (partner(bit) > own_ || call_.reduce.commutative) {
                call_.reduce.apply(data_, data_, theirs, count_);
            } else {
                call_.reduce.apply(theirs, theirs, data_, count_);
                std::memcpy(data_, theirs, nbytes_);
            }
        }
        if (folds_) {
            DIOMP_TRY(unfold.send(leader(own_ + 1), {data_, nbytes_}));
        }
        return unfold.finish();
    }

private:
    [[nodiscard]] std::size_t leader(std::size_t node) const {
        return call_.layout().leaders[node];
    }
    [[nodiscard]] std::size_t partner(std::size_t bit) const {
        std::size_t const other = (folds_ ? own_ / 2 : own_ - num_folded_) ^ bit;
        return other < num_folded_ ? 2 * other : other + num_folded_;
    }
    [[nodiscard]] std::byte *heard_of(std::size_t round) const {
        return heard_ + round * round_up(nbytes_);
    }

    spanning_call &call_;
    std::byte *data_;
    std::size_t count_;
    std::size_t nbytes_;
    std::byte *heard_;
    std::size_t num_doubling_;
    std::size_t num_folded_;
    std::size_t own_;
    bool folds_;
    bool is_folded_;
    stream fold_;
    std::deque<stream> rounds_; ///< the last one unfolds
};

/// Each node reduces one part of the data. It gets that part from all others letter by letter,
/// combines each letter when it is there, and sends the result at once. In `aside` there is room
/// for the own part from every node.
class splitting {
public:
    splitting(spanning_call &call, std::byte *data, std::size_t count, std::byte *aside,
              stream::readiness how)
        : call_(call), data_(data), count_(count), aside_(aside), own_(call.own_node()),
          mine_(part_of(own_)), stride_(round_up(mine_.size())), operands_(call, how),
          results_(call, how), first_operand_(call.num_nodes()) {
        for (std::size_t i = 1; i < call.num_nodes(); ++i) {
            std::size_t const node = (own_ + i) % call.num_nodes();
            first_operand_[node] =
                operands_.expect(leader(node), {aside_ + node * stride_, mine_.size()});
            results_.expect(leader(node), part_of(node));
        }
    }

    status run() {
        DIOMP_TRY(send_operands());
        std::size_t const elements = stream::letter_bytes / call_.unit_bytes;
        for (std::size_t letter = 0; letter < stream::num_letters(mine_.size()); ++letter) {
            for (std::size_t node = 0; node < call_.num_nodes(); ++node) {
                if (node != own_) {
                    DIOMP_TRY(operands_.await(first_operand_[node] + letter));
                }
            }
            std::size_t const at = letter * stream::letter_bytes;
            std::size_t const n = std::min(elements, (mine_.size() - at) / call_.unit_bytes);
            reduce_blocks(call_, mine_.data() + at, call_.num_nodes(), n,
                          [&](std::size_t node) -> const std::byte * {
                              return (node == own_ ? mine_.data() : aside_ + node * stride_) + at;
                          });
            for (std::size_t i = 1; i < call_.num_nodes(); ++i) {
                std::size_t const node = (own_ + i) % call_.num_nodes();
                DIOMP_TRY(results_.send_letter(leader(node), mine_, letter));
            }
        }
        DIOMP_TRY(results_.await_all());
        return results_.finish();
    }

private:
    [[nodiscard]] std::size_t leader(std::size_t node) const {
        return call_.layout().leaders[node];
    }
    [[nodiscard]] std::span<std::byte> part_of(std::size_t node) const {
        std::size_t const unit = call_.unit_bytes;
        std::size_t const grain = std::max<std::size_t>(1, cache_line_bytes / unit);
        range const part = share_of(count_, call_.num_nodes(), node, grain);
        return {data_ + part.begin * unit, part.count * unit};
    }

    // Letters of all streams in turn, so that nobody waits for its first one long.
    status send_operands() {
        std::size_t const num = call_.num_nodes();
        std::size_t most = 0;
        for (std::size_t node = 0; node < num; ++node) {
            most = std::max(most, stream::num_letters(part_of(node).size()));
        }
        for (std::size_t letter = 0; letter < most; ++letter) {
            for (std::size_t i = 1; i < num; ++i) {
                std::size_t const node = (own_ + i) % num;
                if (letter < stream::num_letters(part_of(node).size())) {
                    DIOMP_TRY(operands_.send_letter(leader(node), part_of(node), letter));
                }
            }
        }
        return {};
    }

    spanning_call &call_;
    std::byte *data_;
    std::size_t count_;
    std::byte *aside_;
    std::size_t own_;
    std::span<std::byte> mine_;
    std::size_t stride_;
    stream operands_;
    stream results_;
    std::vector<std::size_t> first_operand_; ///< [node]
};

/// Letters of a split hold whole elements.
bool may_split(const spanning_call &call, std::size_t nbytes) {
    return nbytes >= part_from_bytes && stream::letter_bytes % call.unit_bytes == 0;
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
    group::bridge &across = call.across;
    if (call.needs_rank_order()) {
        DIOMP_TRY(across.meet_begun());
        return reduce_in_rank_order(call, call.src(), true);
    }
    std::size_t const rounds = doubling::num_rounds(call.num_nodes());
    chunking const pieces = cut_operand(call, 1);
    std::size_t const nbytes = std::min(pieces.chunk, pieces.total) * call.unit_bytes;
    bool const splits = may_split(call, nbytes);
    std::size_t const aside_bytes =
        splits ? nbytes * 2 + 2 * cache_line_bytes * call.num_nodes() : rounds * round_up(nbytes);
    std::byte *const aside = across.is_leader() ? across.scratch(aside_bytes) : nullptr;
    for (std::size_t i = 0; i < pieces.num_chunks(); ++i) {
        range const piece = pieces[i];
        std::size_t const at = piece.begin * call.unit_bytes;
        std::byte *const data = call.dst() + at;
        std::optional<doubling> doubled;
        std::optional<splitting> split;
        auto const how = i == 0 ? stream::readiness::agreed : stream::readiness::told;
        if (across.is_leader() && splits) {
            split.emplace(call, data, piece.count, aside, how);
        } else if (across.is_leader()) {
            doubled.emplace(call, data, piece.count, aside, how);
        }
        if (i == 0) {
            DIOMP_TRY(across.meet_begun());
        }
        DIOMP_TRY(call.run_near(operation::reduce, data, call.src() + at, piece.count, 0));
        if (split) {
            DIOMP_TRY(split->run());
        } else if (doubled) {
            DIOMP_TRY(doubled->run());
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
