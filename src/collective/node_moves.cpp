// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/node_moves.h"

#include "collective/check.h"
#include "collective/select.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::collective {

using sync::operation;

std::vector<std::size_t> node_moves::members_of(const roles &who,
                                                const std::vector<std::uint32_t> &ranks) {
    std::vector<std::size_t> members;
    for (std::uint32_t const rank : ranks) {
        for (std::size_t i = 0; i < who.num_of(rank); ++i) {
            members.push_back(who.member(rank, i));
        }
    }
    return members;
}

void node_moves::deliver(std::byte *to, const std::byte *from, std::size_t nbytes) const {
    if (to != from && nbytes > 0) {
        rma::copy_bytes(to, from, nbytes, call_.chosen.stream_threshold_bytes);
    }
}

// In the own table, if another rank of the node reads it.
std::optional<std::span<const std::byte>> node_moves::wanted_by_others(std::size_t place,
                                                                       std::size_t column) const {
    if (same_for_all_ && call_.asked.root < 0) {
        return plan_.outgoing(place, call_.who.own(place));
    }
    std::size_t const to = same_for_all_ ? call_.root() : members_[column];
    std::size_t const rank = call_.who.rank_of(to);
    bool const is_here = std::ranges::binary_search(ranks_, rank);
    return is_here && rank != call_.who.self() ? plan_.outgoing(place, to) : std::nullopt;
}

node_moves::entry node_moves::announce(std::span<const std::byte> block, bool may_stay) {
    entry made;
    made.nbytes = block.size();
    if (may_stay && call_.chosen.in_window(block.data()) && made.nbytes > 0) {
        made.address = reinterpret_cast<std::uintptr_t>(block.data());
        own_.in_window = 1;
    } else {
        made.begin = own_.stream_bytes;
        stream_.emplace_back(block, made.begin);
        own_.stream_bytes += made.nbytes;
    }
    return made;
}

void node_moves::make_table(bool may_stay) {
    table_.assign(call_.who.num_own() * num_columns_, {});
    stream_.clear();
    own_ = {};
    for (std::size_t i = 0; i < call_.who.num_own(); ++i) {
        for (std::size_t column = 0; column < num_columns_; ++column) {
            if (auto const block = wanted_by_others(i, column)) {
                table_[i * num_columns_ + column] = announce(*block, may_stay);
            }
        }
    }
}

std::size_t node_moves::column_of(std::size_t member) const {
    return same_for_all_
               ? 0
               : static_cast<std::size_t>(std::ranges::find(members_, member) - members_.begin());
}

void node_moves::write_table() const {
    std::memcpy(own_stage(), table_.data(), table_.size() * sizeof(entry));
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
    std::byte *const stage = own_stage() + (round == 0 ? table_bytes() : 0);
    for (const auto &[block, at] : stream_) {
        std::size_t const first = std::max(begin, at);
        std::size_t const last = std::min(end, at + block.size());
        if (first < last) {
            rma::copy_cached(stage + (first - begin), block.data() + (first - at), last - first);
        }
    }
}

void node_moves::read_tables() {
    for (std::size_t i = 0; i < call_.who.num_own(); ++i) {
        std::size_t const column = column_of(call_.who.own(i));
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
                std::memcpy(&told, stage_of(place) + (j * num_columns_ + column) * sizeof(entry),
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
                    stage_of(each.place) + (round == 0 ? table_bytes() : 0) + (first - begin),
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
    return std::ranges::max(blocks_of(*call_.asked.blocks).nbytes) > small / 2;
}

status node_moves::run() {
    if (ranks_.size() == 1) {
        copy_own();
        return {};
    }
    DIOMP_TRY(here_.settle());
    if (wants_large_stages() && here_.may_grow()) {
        DIOMP_TRY(
            here_.grow_stages(call_.signature, large_stage_bytes, call_.chosen.stage_room_bytes));
    }
    if (table_bytes() > here_.stage_bytes()) {
        return error(
            OMPX_ERR_UNSUPPORTED,
            fmt::format("{} members on one node are too many for this call", members_.size()),
            "use smaller groups, or the form with equal sizes");
    }
    make_table(false);
    if (own_.stream_bytes > first_room()) { // else it costs no further meeting
        make_table(true);
    }
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

} // namespace diomp::collective
