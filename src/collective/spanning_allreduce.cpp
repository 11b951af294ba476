// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Allreduce over several nodes: the operands of a node are combined by the call for one node, the
// results of the nodes by their leaders, in the order of the nodes.
#include "collective/spanning_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

namespace diomp::collective {
namespace {

using sync::operation;

/// From here on each node reduces a part for all; below, all reduce all.
constexpr std::size_t part_from_bytes = std::size_t{128} << 10;

// What the leaders do in an allreduce. The constructors tell where letters are wanted, in all
// rounds at once and before the data is there, so that nobody waits for that later.

/// As exchange_small in spanning.cpp, from `operand` to `data`, which may be the same. In `heard`
/// there is room for num_rounds operands.
class doubling {
public:
    doubling(spanning_call &call, const std::byte *operand, std::byte *data, std::size_t count,
             std::byte *heard, stream::readiness how)
        : call_(call), operand_(operand), data_(data), count_(count),
          nbytes_(count * call.unit_bytes), heard_(heard),
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

    static std::size_t num_rounds(std::size_t num_nodes) {
        return static_cast<std::size_t>(std::bit_width(num_nodes));
    }

    status run() {
        stream &unfold = rounds_.back();
        if (is_folded_) {
            DIOMP_TRY(fold_.send(leader(own_ - 1), {operand_, nbytes_}));
            DIOMP_TRY(fold_.finish());
            return unfold.await_all();
        }
        const std::byte *have = operand_;
        if (folds_) {
            DIOMP_TRY(fold_.await_all());
            call_.reduce.apply(data_, have, heard_of(0), count_);
            have = data_;
        }
        std::size_t round = 0;
        for (std::size_t bit = 1; bit < num_doubling_; bit *= 2) {
            stream &letters = rounds_[round++];
            DIOMP_TRY(letters.send(leader(partner(bit)), {have, nbytes_}));
            DIOMP_TRY(letters.await_all());
            DIOMP_TRY(letters.finish());
            std::byte *const theirs = heard_of(round);
            if (partner(bit) > own_ || call_.reduce.commutative) {
                call_.reduce.apply(data_, have, theirs, count_);
            } else {
                call_.reduce.apply(theirs, theirs, have, count_);
                std::memcpy(data_, theirs, nbytes_);
            }
            have = data_;
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
    const std::byte *operand_;
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
    splitting(spanning_call &call, const std::byte *operand, std::byte *data, std::size_t count,
              std::byte *aside, stream::readiness how)
        : call_(call), operand_(operand), data_(data), count_(count), aside_(aside),
          own_(call.own_node()), mine_(part_of(own_)), stride_(round_up(mine_.size())),
          operands_(call, how), results_(call, how), first_operand_(call.num_nodes()) {
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
            reduce_blocks(
                call_, mine_.data() + at, call_.num_nodes(), n,
                [&](std::size_t node) -> const std::byte * {
                    return (node == own_ ? operand_of(own_).data() : aside_ + node * stride_) + at;
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
    [[nodiscard]] std::span<const std::byte> operand_of(std::size_t node) const {
        std::span<std::byte> const part = part_of(node);
        return {operand_ + (part.data() - data_), part.size()};
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
                    DIOMP_TRY(operands_.send_letter(leader(node), operand_of(node), letter));
                }
            }
        }
        return {};
    }

    spanning_call &call_;
    const std::byte *operand_;
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

} // namespace

// In dst of the leaders.
status spanning_allreduce(spanning_call &call) {
    group::bridge &across = call.across;
    if (call.needs_rank_order()) {
        DIOMP_TRY(across.meet_begun());
        return reduce_in_rank_order(call, call.src(), true);
    }
    std::size_t const rounds = doubling::num_rounds(call.num_nodes());
    chunking const pieces = cut_operand(call);
    std::size_t const nbytes = std::min(pieces.chunk, pieces.total) * call.unit_bytes;
    bool const splits = may_split(call, nbytes);
    std::size_t const aside_bytes =
        splits ? nbytes * 2 + 2 * cache_line_bytes * call.num_nodes() : rounds * round_up(nbytes);
    std::byte *const aside = across.is_leader() ? across.scratch(aside_bytes) : nullptr;
    // A node's only operand is read where it lies.
    bool const is_alone = call.num_here() == 1;
    for (std::size_t i = 0; i < pieces.num_chunks(); ++i) {
        range const piece = pieces[i];
        std::size_t const at = piece.begin * call.unit_bytes;
        std::byte *const data = call.dst() + at;
        const std::byte *const operand = is_alone ? call.src() + at : data;
        std::optional<doubling> doubled;
        std::optional<splitting> split;
        auto const how = i == 0 ? stream::readiness::agreed : stream::readiness::told;
        if (across.is_leader() && splits) {
            split.emplace(call, operand, data, piece.count, aside, how);
        } else if (across.is_leader()) {
            doubled.emplace(call, operand, data, piece.count, aside, how);
        }
        if (i == 0) {
            DIOMP_TRY(across.meet_begun());
        }
        if (!is_alone) {
            DIOMP_TRY(call.run_near(operation::reduce, data, call.src() + at, piece.count, 0));
        }
        if (split) {
            DIOMP_TRY(split->run());
        } else if (doubled) {
            DIOMP_TRY(doubled->run());
        }
        if (!is_alone) {
            DIOMP_TRY(
                call.run_near(operation::bcast, data, nullptr, piece.count * call.unit_bytes, 0));
        }
    }
    return {};
}

} // namespace diomp::collective
