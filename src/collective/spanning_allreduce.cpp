// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Allreduce over several nodes: the operands of a node are combined by the call for one node, the
// results of the nodes by their leaders, in the order of the nodes. Large data is cut into columns,
// one for each member of a node where nodes have equally many, who do that side by side: one
// process seldom fills a network, and where ranks share cores all have the same to do.
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
/// A column has so much at least.
constexpr std::size_t column_bytes = std::size_t{32} << 10;

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
            // Both compute the same: the operand of the lower nodes is the first one, also of
            // operators that commute, since values that are equal may differ in their bits.
            if (partner(bit) > own_) {
                call_.reduce.apply(data_, have, theirs, count_);
            } else {
                call_.reduce.apply_to_second(data_, theirs, have, count_);
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

/// Each node reduces one part of a column. Its member there gets that part from all others letter
/// by letter, combines each letter when it is there, and sends the result at once. In `aside` there
/// is room for the own part from every node.
class splitting {
public:
    /// [node] of `speakers`: whose column it is there.
    splitting(spanning_call &call, const std::vector<std::uint32_t> &speakers,
              const std::byte *operand, std::byte *data, std::size_t count, std::byte *aside,
              stream::readiness how)
        : call_(call), speakers_(speakers), operand_(operand), data_(data), count_(count),
          aside_(aside), own_(call.own_node()), mine_(part_of(own_)),
          stride_(round_up(mine_.size())), operands_(call, how), results_(call, how),
          first_operand_(call.num_nodes()) {
        for (std::size_t i = 1; i < call.num_nodes(); ++i) {
            std::size_t const node = (own_ + i) % call.num_nodes();
            first_operand_[node] =
                operands_.expect(speakers_[node], {aside_ + node * stride_, mine_.size()});
            results_.expect(speakers_[node], part_of(node));
        }
    }

    status run() {
        DIOMP_TRY(send_operands());
        std::size_t const elements = stream::usual_letter_bytes / call_.unit_bytes;
        for (std::size_t letter = 0; letter < results_.num_letters(mine_.size()); ++letter) {
            for (std::size_t node = 0; node < call_.num_nodes(); ++node) {
                if (node != own_) {
                    DIOMP_TRY(operands_.await(first_operand_[node] + letter));
                }
            }
            std::size_t const at = letter * stream::usual_letter_bytes;
            std::size_t const n = std::min(elements, (mine_.size() - at) / call_.unit_bytes);
            reduce_blocks(
                call_, mine_.data() + at, call_.num_nodes(), n,
                [&](std::size_t node) -> const std::byte * {
                    return (node == own_ ? operand_of(own_).data() : aside_ + node * stride_) + at;
                });
            for (std::size_t i = 1; i < call_.num_nodes(); ++i) {
                std::size_t const node = (own_ + i) % call_.num_nodes();
                DIOMP_TRY(results_.send_letter(speakers_[node], mine_, letter));
            }
        }
        DIOMP_TRY(results_.await_all());
        return results_.finish();
    }

private:
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
            most = std::max(most, operands_.num_letters(part_of(node).size()));
        }
        for (std::size_t letter = 0; letter < most; ++letter) {
            for (std::size_t i = 1; i < num; ++i) {
                std::size_t const node = (own_ + i) % num;
                if (letter < operands_.num_letters(part_of(node).size())) {
                    DIOMP_TRY(operands_.send_letter(speakers_[node], operand_of(node), letter));
                }
            }
        }
        return {};
    }

    spanning_call &call_;
    const std::vector<std::uint32_t> &speakers_;
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
    return nbytes >= part_from_bytes && stream::usual_letter_bytes % call.unit_bytes == 0;
}

/// Of `nbytes` that are split: one for each member of a node, if they are alike, or one.
std::size_t num_columns(const spanning_call &call, std::size_t nbytes) {
    auto const [fewest, most] = std::ranges::minmax(call.layout().sizes);
    return fewest == most && nbytes / most >= column_bytes ? most : 1;
}

/// Columns of a piece of the data, and the near calls before and after they are reduced. They are
/// equal but for the last, which has the rest.
class columns {
public:
    columns(spanning_call &call, range piece, std::size_t num)
        : call_(call), num_(num), base_(piece.begin * call.unit_bytes), count_(piece.count) {
        std::size_t const grain = std::max<std::size_t>(1, cache_line_bytes / call.unit_bytes);
        each_ = num == 1 ? count_ : count_ / num / grain * grain;
    }

    [[nodiscard]] std::size_t count_of(std::size_t place) const {
        return place + 1 < num_ ? each_ : count_ - (num_ - 1) * each_;
    }
    /// In dst and src.
    [[nodiscard]] std::size_t offset_of(std::size_t place) const {
        return base_ + place * each_ * call_.unit_bytes;
    }
    /// The node's operands, into dst of the members whose columns they are.
    status reduce_near() const {
        if (num_ == 1) {
            return reduce_to(0, base_, count_);
        }
        if (each_ > 0) {
            DIOMP_TRY(call_.run_near(operation::reduce_scatter, call_.dst() + own_offset(),
                                     call_.src() + base_, each_));
        }
        return rest() == 0 ? status() : reduce_to(num_ - 1, rest_offset(), rest());
    }
    status bcast_near() const {
        if (num_ == 1) {
            return bcast_from(0, base_, count_);
        }
        if (each_ > 0) {
            DIOMP_TRY(call_.run_near(operation::allgather, call_.dst() + base_,
                                     call_.dst() + own_offset(), each_ * call_.unit_bytes));
        }
        return rest() == 0 ? status() : bcast_from(num_ - 1, rest_offset(), rest());
    }

private:
    [[nodiscard]] std::size_t own_offset() const { return offset_of(call_.layout().own_place); }
    [[nodiscard]] std::size_t rest() const { return count_ - num_ * each_; }
    [[nodiscard]] std::size_t rest_offset() const { return offset_of(num_); }
    status reduce_to(std::size_t place, std::size_t at, std::size_t count) const {
        return call_.run_near(operation::reduce, call_.dst() + at, call_.src() + at, count,
                              static_cast<int>(place));
    }
    status bcast_from(std::size_t place, std::size_t at, std::size_t count) const {
        return call_.run_near(operation::bcast, call_.dst() + at, nullptr, count * call_.unit_bytes,
                              static_cast<int>(place));
    }

    spanning_call &call_;
    std::size_t num_;
    std::size_t base_; ///< bytes
    std::size_t count_;
    std::size_t each_ = 0;
};

} // namespace

// In dst of all that have a column.
status spanning_allreduce(spanning_call &call) {
    group::bridge &across = call.across;
    if (call.needs_rank_order()) {
        DIOMP_TRY(across.meet_begun());
        return reduce_in_rank_order(call, call.src(), true);
    }
    std::size_t const unit = call.unit_bytes;
    bool const splits = may_split(call, call.block_bytes());
    std::size_t const num = splits ? num_columns(call, call.block_bytes()) : 1;
    chunking pieces = cut_operand(call);
    pieces.chunk *= num;
    std::size_t const nbytes = std::min(pieces.chunk, pieces.total) * unit;
    std::size_t const place = call.layout().own_place;
    bool const has_column = place < num;
    std::vector<std::uint32_t> const speakers =
        splits && has_column ? call.layout().members_at(place) : std::vector<std::uint32_t>();
    std::size_t const lines = 2 * cache_line_bytes * (call.num_nodes() + num);
    std::size_t const aside_bytes = splits
                                        ? 2 * (nbytes / num + num * unit) + lines
                                        : doubling::num_rounds(call.num_nodes()) * round_up(nbytes);
    std::byte *const aside = has_column ? across.scratch(aside_bytes) : nullptr;
    // A node's only operand is read where it lies.
    bool const is_alone = call.num_here() == 1;
    for (std::size_t i = 0; i < pieces.num_chunks(); ++i) {
        range const piece = pieces[i];
        columns const cut(call, piece, num);
        std::byte *const data = call.dst() + (has_column ? cut.offset_of(place) : 0);
        const std::byte *const operand = is_alone ? call.src() + cut.offset_of(place) : data;
        std::optional<doubling> doubled;
        std::optional<splitting> split;
        auto const how = i == 0 ? stream::readiness::agreed : stream::readiness::told;
        if (has_column && splits) {
            split.emplace(call, speakers, operand, data, cut.count_of(place), aside, how);
        } else if (has_column) {
            doubled.emplace(call, operand, data, piece.count, aside, how);
        }
        if (i == 0) {
            DIOMP_TRY(across.meet_begun());
        }
        if (!is_alone) {
            DIOMP_TRY(cut.reduce_near());
        }
        if (split) {
            DIOMP_TRY(split->run());
        } else if (doubled) {
            DIOMP_TRY(doubled->run());
        }
        if (!is_alone) {
            DIOMP_TRY(cut.bcast_near());
        }
    }
    return {};
}

} // namespace diomp::collective
