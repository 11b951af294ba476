// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/moves.h"

#include "collective/node_moves.h"
#include "collective/spanning.h"

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <vector>

namespace diomp::collective {
namespace {

using sync::operation;

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
    return across.found_late();
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
            std::uint64_t const sent =
                heard[(call.who.rank_of(from) * k + i) * k + call.who.place_of(from)];
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
