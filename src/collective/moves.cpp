// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/moves.h"

#include "collective/check.h"
#include "collective/select.h"
#include "collective/spanning.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace diomp::collective {
namespace {

using sync::operation;

/// The v form and the one with equal sizes follow one pattern.
operation pattern_of(operation what) {
    switch (what) {
    case operation::gatherv:
        return operation::gather;
    case operation::scatterv:
        return operation::scatter;
    case operation::allgatherv:
        return operation::allgather;
    case operation::alltoallv:
        return operation::alltoall;
    default:
        return what;
    }
}

/// A block in a table: in the window, or from `begin` on in its rank's stream.
struct entry {
    std::uint64_t address = 0; ///< 0: in the stream
    std::uint64_t begin = 0;
    std::uint64_t nbytes = 0;
};

/// What the ranks of a node tell with their tables.
struct announcement {
    std::uint64_t stream_bytes = 0;
    std::uint64_t in_window = 0; ///< not 0: others will read blocks there
};

/// A block of another rank's stream, for this one.
struct expected_block {
    std::size_t place; ///< of the sender's rank on the node
    entry at;
    std::byte *to;
};

/// The part of a call that stays on one node.
class node_moves {
public:
    node_moves(const member_call &call, group::local_group &here, std::vector<std::uint32_t> ranks)
        : call_(call), here_(here), ranks_(std::move(ranks)), plan_(call) {
        for (std::uint32_t const rank : ranks_) {
            for (std::size_t i = 0; i < call.who.num_of(rank); ++i) {
                members_.push_back(call.who.member(rank, i));
            }
        }
        num_columns_ = plan_.same_for_all() ? 1 : members_.size();
    }

    status run();

private:
    [[nodiscard]] std::size_t table_bytes() const {
        return call_.who.most_per_rank() * num_columns_ * sizeof(entry);
    }
    [[nodiscard]] std::size_t self_place() const { return here_.self().index(); }
    /// Bytes of the stream that fit beside the table.
    [[nodiscard]] std::size_t first_room() const { return here_.stage_bytes() - table_bytes(); }
    [[nodiscard]] std::optional<std::span<const std::byte>>
    wanted_by_others(std::size_t place, std::size_t column) const;
    [[nodiscard]] bool wants_large_stages() const;
    void make_table();
    void write_table() const;
    void write_stream(std::size_t round) const;
    /// Bytes [begin, end) of the stream go with a round.
    [[nodiscard]] std::pair<std::size_t, std::size_t> window_of(std::size_t round) const;
    void read_tables();
    void read_stream(std::size_t round) const;
    void copy_in_window() const;
    void copy_own() const;
    void deliver(std::byte *to, const std::byte *from, std::size_t nbytes) const;

    const member_call &call_;
    group::local_group &here_;
    std::vector<std::uint32_t> ranks_;
    block_plan plan_;
    std::vector<std::size_t> members_; ///< on the node, by rank
    std::size_t num_columns_ = 1;
    std::vector<entry> table_; ///< own, [place][column]
    std::vector<std::pair<std::span<const std::byte>, std::size_t>> stream_; ///< with its begin
    announcement own_;
    std::vector<expected_block> staged_;
    std::vector<expected_block> direct_;
};

void node_moves::deliver(std::byte *to, const std::byte *from, std::size_t nbytes) const {
    if (to != from && nbytes > 0) {
        rma::copy_bytes(to, from, nbytes, call_.chosen.stream_threshold_bytes);
    }
}

// In the own table, if another rank of the node reads it.
std::optional<std::span<const std::byte>> node_moves::wanted_by_others(std::size_t place,
                                                                       std::size_t column) const {
    if (plan_.same_for_all() && call_.asked.root < 0) {
        return plan_.outgoing(place, call_.who.own(place));
    }
    std::size_t const to = plan_.same_for_all() ? call_.root() : members_[column];
    std::size_t const rank = call_.who.rank_of(to);
    bool const is_here = std::ranges::binary_search(ranks_, rank);
    return is_here && rank != call_.who.self() ? plan_.outgoing(place, to) : std::nullopt;
}

void node_moves::make_table() {
    table_.assign(call_.who.num_own() * num_columns_, {});
    // A stream that fits beside the table costs no further meeting.
    for (bool const may_stay : {false, true}) {
        stream_.clear();
        own_ = {};
        for (std::size_t i = 0; i < call_.who.num_own(); ++i) {
            for (std::size_t column = 0; column < num_columns_; ++column) {
                auto const block = wanted_by_others(i, column);
                entry &made = table_[i * num_columns_ + column];
                made = {};
                if (!block) {
                    continue;
                }
                made.nbytes = block->size();
                auto const address = reinterpret_cast<std::uintptr_t>(block->data());
                bool const is_shared =
                    address - call_.chosen.window_base < call_.chosen.window_span;
                if (may_stay && is_shared && made.nbytes > 0) {
                    made.address = address;
                    own_.in_window = 1;
                } else {
                    made.begin = own_.stream_bytes;
                    stream_.emplace_back(*block, made.begin);
                    own_.stream_bytes += made.nbytes;
                }
            }
        }
        if (own_.stream_bytes <= first_room()) {
            return;
        }
    }
}

void node_moves::write_table() const {
    std::memcpy(here_.next_stage(), table_.data(), table_.size() * sizeof(entry));
}

std::pair<std::size_t, std::size_t> node_moves::window_of(std::size_t round) const {
    if (round == 0) {
        return {0, first_room()};
    }
    std::size_t const begin = first_room() + (round - 1) * here_.stage_bytes();
    return {begin, begin + here_.stage_bytes()};
}

void node_moves::write_stream(std::size_t round) const {
    auto const [begin, end] = window_of(round);
    std::byte *const stage = here_.next_stage() + (round == 0 ? table_bytes() : 0);
    for (const auto &[block, at] : stream_) {
        std::size_t const first = std::max(begin, at);
        std::size_t const last = std::min(end, at + block.size());
        if (first < last) {
            std::memcpy(stage + (first - begin), block.data() + (first - at), last - first);
        }
    }
}

void node_moves::read_tables() {
    std::size_t column = 0;
    for (std::size_t i = 0; i < call_.who.num_own(); ++i) {
        std::size_t const self = call_.who.own(i);
        column =
            plan_.same_for_all()
                ? 0
                : static_cast<std::size_t>(std::ranges::find(members_, self) - members_.begin());
        for (std::size_t step = 1; step < ranks_.size(); ++step) {
            // Everybody starts with the next one, so that they do not all read the same stage.
            std::size_t const place = (self_place() + step) % ranks_.size();
            if (!plan_.sends(ranks_[place])) {
                continue;
            }
            for (std::size_t j = 0; j < call_.who.num_of(ranks_[place]); ++j) {
                auto const wanted = plan_.incoming(i, call_.who.member(ranks_[place], j));
                if (!wanted || wanted->empty()) {
                    continue;
                }
                entry told;
                std::memcpy(&told,
                            here_.stage_of(place) + (j * num_columns_ + column) * sizeof(entry),
                            sizeof(told));
                (told.address != 0 ? direct_ : staged_).push_back({place, told, wanted->data()});
            }
        }
    }
}

void node_moves::read_stream(std::size_t round) const {
    auto const [begin, end] = window_of(round);
    for (const expected_block &each : staged_) {
        std::size_t const first = std::max<std::size_t>(begin, each.at.begin);
        std::size_t const last = std::min<std::size_t>(end, each.at.begin + each.at.nbytes);
        if (first < last) {
            deliver(each.to + (first - each.at.begin),
                    here_.stage_of(each.place) + (round == 0 ? table_bytes() : 0) + (first - begin),
                    last - first);
        }
    }
}

void node_moves::copy_in_window() const {
    for (const expected_block &each : direct_) {
        deliver(each.to, reinterpret_cast<const std::byte *>(each.at.address), each.at.nbytes);
    }
}

void node_moves::copy_own() const {
    for (std::size_t from = 0; from < call_.who.num_own(); ++from) {
        for (std::size_t to = 0; to < call_.who.num_own(); ++to) {
            auto const block = plan_.outgoing(from, call_.who.own(to));
            auto const place = plan_.incoming(to, call_.who.own(from));
            if (block && place) {
                deliver(place->data(), block->data(), std::min(block->size(), place->size()));
            }
        }
    }
}

// From what all know alike.
bool node_moves::wants_large_stages() const {
    constexpr std::size_t small = group::member_block::small_stage_bytes;
    if (table_bytes() > small / 2 || call_.asked.what == operation::alltoallv) {
        return true;
    }
    if (!has_block_lists(call_.asked.what)) {
        return call_.block_bytes() > small / 2;
    }
    const block_lists &lists = *call_.asked.blocks;
    auto const &nbytes = lists.dst.nbytes.empty() ? lists.src.nbytes : lists.dst.nbytes;
    return std::ranges::max(nbytes) > small / 2;
}

status node_moves::run() {
    if (ranks_.size() == 1) {
        copy_own();
        return {};
    }
    DIOMP_TRY(here_.settle());
    if (wants_large_stages() && here_.may_grow()) {
        DIOMP_TRY(here_.grow_stages(call_.signature, large_stage_bytes));
    }
    if (table_bytes() > here_.stage_bytes()) {
        return error(
            OMPX_ERR_UNSUPPORTED,
            fmt::format("{} members on one node are too many for this call", members_.size()),
            "use smaller groups, or the form with equal sizes");
    }
    make_table();
    write_table();
    write_stream(0);
    DIOMP_TRY(here_.meet(call_.signature, {own_.stream_bytes, own_.in_window}));
    std::size_t longest = 0;
    bool any_in_window = false;
    for (std::size_t place = 0; place < ranks_.size(); ++place) {
        const sync::meeting_payload &told = here_.payload_of(place);
        longest = std::max<std::size_t>(longest, told[0]);
        any_in_window = any_in_window || told[1] != 0;
    }
    read_tables();
    copy_own();
    for (std::size_t round = 0; round == 0 || window_of(round).first < longest; ++round) {
        if (round > 0) {
            DIOMP_TRY(here_.meet(call_.signature));
        }
        if (window_of(round + 1).first < longest) {
            write_stream(round + 1);
        }
        read_stream(round);
        if (round == 0) {
            copy_in_window();
        }
    }
    return any_in_window ? here_.meet(call_.signature) : status{};
}

/// Letters between the members number `from` and `to` of their ranks.
class pair_letters {
public:
    pair_letters(const member_call &call, spanning_call &across, std::size_t from, std::size_t to)
        : call_(call), layout_(across.layout()), own_node_(across.own_node()), letters_(across),
          from_(from), to_(to) {}

    void expect(const block_plan &plan) {
        if (to_ >= call_.who.num_own()) {
            return;
        }
        for (std::size_t rank = 0; rank < call_.who.num_ranks(); ++rank) {
            if (layout_.node(rank) == own_node_ || from_ >= call_.who.num_of(rank)) {
                continue;
            }
            auto const wanted = plan.incoming(to_, call_.who.member(rank, from_));
            if (wanted && !wanted->empty()) {
                letters_.expect(rank, *wanted);
            }
        }
    }
    status send(const block_plan &plan) {
        std::size_t const n = call_.who.num_ranks();
        for (std::size_t step = 1; from_ < call_.who.num_own() && step < n; ++step) {
            std::size_t const rank = (call_.who.self() + step) % n;
            if (layout_.node(rank) == own_node_ || to_ >= call_.who.num_of(rank)) {
                continue;
            }
            auto const block = plan.outgoing(from_, call_.who.member(rank, to_));
            if (block && !block->empty()) {
                DIOMP_TRY(letters_.send(rank, *block));
            }
        }
        return {};
    }
    status finish() {
        DIOMP_TRY(letters_.await_all());
        return letters_.finish();
    }

private:
    const member_call &call_;
    const group::node_layout &layout_;
    std::size_t own_node_;
    stream letters_;
    std::size_t from_;
    std::size_t to_;
};

status move_between_nodes(const member_call &call) {
    group::bridge &across = *call.members.across();
    spanning_call spanning{call.who.num_ranks(), call.who.self(), across, call.asked,
                           call.chosen,          call.signature,  {},     1};
    across.begin(call.signature);
    DIOMP_TRY(across.meet_begun());
    block_plan const plan(call);
    std::vector<std::unique_ptr<pair_letters>> pairs;
    for (std::size_t from = 0; from < call.who.most_per_rank(); ++from) {
        for (std::size_t to = 0; to < call.who.most_per_rank(); ++to) {
            pairs.push_back(std::make_unique<pair_letters>(call, spanning, from, to));
            pairs.back()->expect(plan);
        }
    }
    for (auto const &each : pairs) {
        DIOMP_TRY(each->send(plan));
    }
    DIOMP_TRY(node_moves(call, across.here(), across.layout().here).run());
    for (auto const &each : pairs) {
        DIOMP_TRY(each->finish());
    }
    return {};
}

std::vector<std::uint32_t> all_ranks(const roles &who) {
    std::vector<std::uint32_t> ranks(who.num_ranks());
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
        ranks[rank] = rank;
    }
    return ranks;
}

status move_blocks(const member_call &call) {
    if (call.members.across() != nullptr) {
        return move_between_nodes(call);
    }
    return node_moves(call, call.members.here(), all_ranks(call.who)).run();
}

// Everybody learns the sizes that the others send to it, before anything is written anywhere.
status compare_sizes(const member_call &call) {
    std::size_t const k = call.who.most_per_rank();
    std::size_t const n = call.who.num_ranks();
    std::vector<std::uint64_t> told(n * k * k);
    std::vector<std::uint64_t> heard(n * k * k);
    for (std::size_t i = 0; i < call.who.num_own(); ++i) {
        for (std::size_t rank = 0; rank < n; ++rank) {
            for (std::size_t j = 0; j < call.who.num_of(rank); ++j) {
                told[(rank * k + j) * k + i] = call.lists(i).src.nbytes[call.who.member(rank, j)];
            }
        }
    }
    DIOMP_TRY(call.run_ranks(operation::alltoall, heard.data(), told.data(),
                             k * k * sizeof(std::uint64_t)));
    std::optional<error> failure;
    std::uint64_t objects_to = 0;
    for (std::size_t i = 0; i < call.who.num_own() && !failure; ++i) {
        for (std::size_t from = 0; from < call.who.size() && !failure; ++from) {
            std::size_t const rank = call.who.rank_of(from);
            std::size_t j = 0;
            while (call.who.member(rank, j) != from) {
                ++j;
            }
            std::uint64_t const sent = heard[(rank * k + i) * k + j];
            std::size_t const wanted = call.lists(i).dst.nbytes[from];
            if (sent != wanted) {
                objects_to = from;
                failure.emplace(OMPX_ERR_MISMATCH,
                                fmt::format("member {} expects {} bytes from member {}, which has "
                                            "{} for it",
                                            call.who.own(i), wanted, from, sent),
                                "src_nbytes of the sender and dst_nbytes of the receiver must "
                                "agree");
            }
        }
    }
    auto agreed = call.members.agree(
        call.signature, failure ? std::optional<std::uint64_t>(objects_to) : std::nullopt);
    DIOMP_TRY(agreed);
    if (failure) {
        return std::move(*failure);
    }
    if (agreed.value()) {
        return error(
            OMPX_ERR_MISMATCH,
            fmt::format("rank {} of the group expects another size of block than member {} "
                        "has for it",
                        agreed.value()->member, agreed.value()->detail),
            "src_nbytes of the sender and dst_nbytes of the receiver must agree");
    }
    return {};
}

} // namespace

std::optional<std::span<const std::byte>> block_plan::outgoing(std::size_t place,
                                                               std::size_t to) const {
    const request &asked = call_.asked;
    std::size_t const self = call_.who.own(place);
    const std::byte *const src = call_.src(place);
    auto const uniform = call_.block_bytes();
    const block_lists *const lists = has_block_lists(asked.what) ? &call_.lists(place) : nullptr;
    switch (pattern_of(asked.what)) {
    case operation::gather:
        if (to != call_.root()) {
            return std::nullopt;
        }
        [[fallthrough]];
    case operation::allgather:
        return std::span(src, lists == nullptr ? uniform : lists->dst.nbytes[self]);
    case operation::scatter:
        if (self != call_.root()) {
            return std::nullopt;
        }
        [[fallthrough]];
    default:
        return lists == nullptr ? std::span(src + to * uniform, uniform)
                                : std::span(src + lists->src.offsets[to], lists->src.nbytes[to]);
    }
}

std::optional<std::span<std::byte>> block_plan::incoming(std::size_t place,
                                                         std::size_t from) const {
    const request &asked = call_.asked;
    std::size_t const self = call_.who.own(place);
    std::byte *const dst = call_.dst(place);
    auto const uniform = call_.block_bytes();
    const block_lists *const lists = has_block_lists(asked.what) ? &call_.lists(place) : nullptr;
    switch (pattern_of(asked.what)) {
    case operation::scatter:
        if (from != call_.root()) {
            return std::nullopt;
        }
        return std::span(dst, lists == nullptr ? uniform : lists->src.nbytes[self]);
    case operation::gather:
        if (self != call_.root()) {
            return std::nullopt;
        }
        [[fallthrough]];
    default:
        return lists == nullptr
                   ? std::span(dst + from * uniform, uniform)
                   : std::span(dst + lists->dst.offsets[from], lists->dst.nbytes[from]);
    }
}

bool block_plan::same_for_all() const {
    operation const pattern = pattern_of(call_.asked.what);
    return pattern == operation::gather || pattern == operation::allgather;
}

bool block_plan::sends(std::size_t rank) const {
    return pattern_of(call_.asked.what) != operation::scatter ||
           call_.who.rank_of(call_.root()) == rank;
}

// In place an alltoall would overwrite what others still have to read: it goes by way of a copy.
status run_member_moves(const member_call &call) {
    if (call.asked.what == operation::alltoallv) {
        DIOMP_TRY(compare_sizes(call));
        return move_blocks(call);
    }
    std::size_t const nbytes = call.who.size() * call.block_bytes();
    std::vector<endpoint_buffers> own(call.own.begin(), call.own.end());
    std::vector<std::unique_ptr<std::byte[]>> copies;
    for (endpoint_buffers &each : own) {
        if (call.asked.what == operation::alltoall && each.src == each.dst && nbytes > 0) {
            copies.push_back(std::make_unique_for_overwrite<std::byte[]>(nbytes));
            std::memcpy(copies.back().get(), each.src, nbytes);
            each.src = copies.back().get();
        }
    }
    member_call const apart{call.members, call.asked,      own,     call.chosen, call.signature,
                            call.reduce,  call.unit_bytes, call.who};
    return move_blocks(apart);
}

} // namespace diomp::collective
