// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/intra_node_exchange.h"

#include "coll/internal/check.h"
#include "coll/internal/select.h"
#include "group/internode.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace diomp::coll {

using sync::operation;

std::vector<std::size_t> intra_node_exchange::members_of(const member_map &map,
                                                         const std::vector<std::uint32_t> &ranks) {
    std::vector<std::size_t> members;
    for (std::uint32_t const rank : ranks) {
        for (std::size_t i = 0; i < map.num_members_of(rank); ++i) {
            members.push_back(map.member(rank, i));
        }
    }
    return members;
}

void intra_node_exchange::copy_to_user(std::byte *to, const std::byte *from,
                                       std::size_t nbytes) const {
    if (to != from && nbytes > 0) {
        rma::copy_bytes(to, from, nbytes, call_.chosen.stream_threshold_bytes);
    }
}

// The block of a column in the own table, if another rank of the node reads it.
std::optional<std::span<const std::byte>>
intra_node_exchange::needed_by_others(std::size_t index, std::size_t column) const {
    if (same_for_all_ && call_.args.root < 0) {
        return plan_.outgoing(index, call_.map.own(index));
    }
    std::size_t const to = same_for_all_ ? call_.root() : members_[column];
    std::size_t const rank = call_.map.rank_of(to);
    bool const is_local = std::ranges::binary_search(ranks_, rank);
    return is_local && rank != call_.map.self() ? plan_.outgoing(index, to) : std::nullopt;
}

intra_node_exchange::entry intra_node_exchange::add_table_entry(std::span<const std::byte> block,
                                                                std::size_t min_direct_bytes) {
    entry made;
    made.nbytes = block.size();
    if (made.nbytes >= min_direct_bytes && call_.chosen.in_arena(block.data())) {
        made.address = reinterpret_cast<std::uintptr_t>(block.data());
        own_header_.in_arena = 1;
    } else {
        made.begin = own_header_.stream_bytes;
        stream_.emplace_back(block, made.begin);
        own_header_.stream_bytes += made.nbytes;
    }
    return made;
}

void intra_node_exchange::make_table(std::size_t min_direct_bytes) {
    table_.assign(call_.map.num_own() * num_columns(), {});
    stream_.clear();
    own_header_ = {};
    for (std::size_t i = 0; i < call_.map.num_own(); ++i) {
        for (std::size_t column = 0; column < num_columns(); ++column) {
            if (auto const block = needed_by_others(i, column)) {
                table_[i * num_columns() + column] = add_table_entry(*block, min_direct_bytes);
            }
        }
    }
}

std::size_t intra_node_exchange::column_of(std::size_t member) const {
    return same_for_all_
               ? 0
               : static_cast<std::size_t>(std::ranges::find(members_, member) - members_.begin());
}

void intra_node_exchange::write_table() const {
    std::memcpy(own_stage_buffer(), table_.data(), table_.size() * sizeof(entry));
}

std::pair<std::size_t, std::size_t> intra_node_exchange::stream_range_of(std::size_t round) const {
    if (round == 0) {
        return {0, first_chunk_bytes()};
    }
    std::size_t const begin = first_chunk_bytes() + (round - 1) * stage_.nbytes;
    return {begin, begin + stage_.nbytes};
}

void intra_node_exchange::write_stream(std::size_t round) const {
    auto const [begin, end] = stream_range_of(round);
    std::byte *const buffer = own_stage_buffer() + (round == 0 ? table_bytes() : 0);
    bool const streams = stage_.tuner != nullptr && stage_.tuner->choice() == 1;
    for (const auto &[block, at] : stream_) {
        std::size_t const first = std::max(begin, at);
        std::size_t const last = std::min(end, at + block.size());
        if (first < last) {
            std::byte *const to = buffer + (first - begin);
            const std::byte *const from = block.data() + (first - at);
            if (streams && last - first >= execution::min_streamed_bytes) {
                rma::copy_streaming(to, from, last - first);
            } else {
                rma::copy_cached(to, from, last - first);
            }
        }
    }
}

void intra_node_exchange::read_tables() {
    for (std::size_t i = 0; i < call_.map.num_own(); ++i) {
        std::size_t const column = column_of(call_.map.own(i));
        for (std::size_t step = 1; step < ranks_.size(); ++step) {
            // Each rank starts with the next one, so that they read different stage buffers.
            std::size_t const index = (self_index() + step) % ranks_.size();
            if (!plan_.sends(ranks_[index])) {
                continue;
            }
            for (std::size_t j = 0; j < call_.map.num_members_of(ranks_[index]); ++j) {
                auto const wanted = plan_.incoming(i, call_.map.member(ranks_[index], j));
                if (!wanted || wanted->empty()) {
                    continue;
                }
                entry received;
                std::memcpy(&received,
                            stage_buffer_of(index) + (j * num_columns() + column) * sizeof(entry),
                            sizeof(received));
                (received.address != 0 ? arena_blocks_ : staged_blocks_)
                    .push_back({index, received, wanted->data()});
            }
        }
    }
}

void intra_node_exchange::read_stream(std::size_t round) const {
    auto const [begin, end] = stream_range_of(round);
    for (const incoming_block &each : staged_blocks_) {
        std::size_t const first = std::max<std::size_t>(begin, each.at.begin);
        std::size_t const last = std::min<std::size_t>(end, each.at.begin + each.at.nbytes);
        if (first < last) {
            copy_to_user(each.to + (first - each.at.begin),
                         stage_buffer_of(each.index) + (round == 0 ? table_bytes() : 0) +
                             (first - begin),
                         last - first);
        }
    }
}

void intra_node_exchange::copy_from_arena() const {
    for (const incoming_block &each : arena_blocks_) {
        copy_to_user(each.to, reinterpret_cast<const std::byte *>(each.at.address), each.at.nbytes);
    }
}

void intra_node_exchange::copy_own() const {
    for (std::size_t from = 0; from < call_.map.num_own(); ++from) {
        for (std::size_t to = 0; to < call_.map.num_own(); ++to) {
            auto const block = plan_.outgoing(from, call_.map.own(to));
            auto const target = plan_.incoming(to, call_.map.own(from));
            if (block && target) {
                copy_to_user(target->data(), block->data(),
                             std::min(block->size(), target->size()));
            }
        }
    }
}

std::optional<std::size_t> intra_node_exchange::max_block_bytes() const {
    if (call_.args.what == operation::alltoallv) {
        return std::nullopt;
    }
    return has_block_lists(call_.args.what) ? std::ranges::max(blocks_of(*call_.args.blocks).nbytes)
                                            : call_.block_bytes();
}

// Depends only on data that is equal on all members.
bool intra_node_exchange::needs_large_stage_buffers() const {
    constexpr std::size_t small = group::stage_memory::small_bytes;
    return table_bytes() > small / 2 || max_block_bytes().value_or(SIZE_MAX) > small / 2;
}

std::size_t intra_node_exchange::choose_stage_bytes() const {
    std::size_t const available = local_.stage_buffers().buffer_bytes();
    auto const block = max_block_bytes();
    if (!block || call_.chosen.oversubscribed) {
        return available;
    }
    std::size_t const blocks = call_.map.max_per_rank() * num_columns();
    return std::min(available, table_bytes() + overlapping_chunk_bytes(blocks * *block));
}

status intra_node_exchange::run() {
    if (ranks_.size() == 1) {
        copy_own();
        return {};
    }
    sync::call_scope const rounds(local_.barrier());
    DIOMP_TRY(local_.begin_call());
    if (needs_large_stage_buffers() && local_.stage_buffers().may_grow()) {
        group::internode_comm *const between = call_.members.internode();
        if (between != nullptr) {
            between->note_growth(true);
        }
        DIOMP_TRY(local_.grow_stage_buffers(call_.signature, large_stage_bytes,
                                            call_.chosen.stage_buffer_half_bytes));
        if (between != nullptr) {
            between->note_growth(false);
        }
    }
    if (table_bytes() > local_.stage_buffers().buffer_bytes()) {
        return error(
            OMPX_ERR_UNSUPPORTED,
            fmt::format("{} members on one node are too many for this call", members_.size()),
            "use smaller groups, or the form with equal sizes");
    }
    stage_.nbytes = choose_stage_bytes();
    make_table(zero_copy_min_bytes);
    if (own_header_.stream_bytes > first_chunk_bytes()) {
        make_table(1); // fewer rounds
    }
    std::size_t const block = max_block_bytes().value_or(0);
    bool const has_stream = own_header_.stream_bytes > 0;
    stage_.tuner = has_stream ? local_.stage_buffers().autotuner_of(block) : nullptr;
    if (stage_.tuner == nullptr) {
        return exchange();
    }
    auto const begin = std::chrono::steady_clock::now();
    DIOMP_TRY(exchange());
    std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - begin;
    stage_.tuner->report(taken.count() / static_cast<double>(block));
    return {};
}

status intra_node_exchange::exchange() {
    write_table();
    write_stream(0);
    DIOMP_TRY(local_.barrier().arrive_and_wait(call_.signature,
                                               {own_header_.stream_bytes, own_header_.in_arena}));
    std::size_t longest = 0;
    bool any_in_arena = false;
    for (std::size_t index = 0; index < ranks_.size(); ++index) {
        const sync::round_payload &received = local_.barrier().payload_of(index);
        longest = std::max<std::size_t>(longest, received[0]);
        any_in_arena = any_in_arena || received[1] != 0;
    }
    read_tables();
    copy_own();
    for (std::size_t round = 0; round == 0 || stream_range_of(round).first < longest; ++round) {
        if (round > 0) {
            DIOMP_TRY(local_.barrier().arrive_and_wait(call_.signature));
        }
        if (stream_range_of(round + 1).first < longest) {
            write_stream(round + 1);
        }
        read_stream(round);
        if (round == 0) {
            copy_from_arena();
        }
    }
    return any_in_arena ? local_.barrier().arrive_and_wait(call_.signature) : status{};
}

} // namespace diomp::coll
