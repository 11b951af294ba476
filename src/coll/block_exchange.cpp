// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/block_exchange.h"

#include "coll/internal/intra_node_exchange.h"
#include "coll/internal/two_level.h"

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <vector>

namespace diomp::coll {
namespace {

using sync::operation;

/// Messages from each rank's member with index `from` to each rank's member with index `to`.
class pair_messages {
public:
    pair_messages(const member_call &call, two_level_call &internode, std::size_t from,
                  std::size_t to)
        : call_(call), layout_(internode.layout()), own_node_(internode.own_node()),
          messages_(internode), from_(from), to_(to) {}

    void post_recv(const block_plan &plan) {
        if (to_ >= call_.map.num_own()) {
            return;
        }
        for (std::size_t rank = 0; rank < call_.map.num_ranks(); ++rank) {
            if (layout_.node(rank) == own_node_ || from_ >= call_.map.num_members_of(rank)) {
                continue;
            }
            auto const wanted = plan.incoming(to_, call_.map.member(rank, from_));
            if (wanted && !wanted->empty()) {
                messages_.post_recv(rank, *wanted);
            }
        }
    }
    status send(const block_plan &plan) {
        std::size_t const n = call_.map.num_ranks();
        for (std::size_t step = 1; from_ < call_.map.num_own() && step < n; ++step) {
            std::size_t const rank = (call_.map.self() + step) % n;
            if (layout_.node(rank) == own_node_ || to_ >= call_.map.num_members_of(rank)) {
                continue;
            }
            auto const block = plan.outgoing(from_, call_.map.member(rank, to_));
            if (block && !block->empty()) {
                DIOMP_TRY(messages_.send(rank, *block));
            }
        }
        return {};
    }
    status finish() {
        DIOMP_TRY(messages_.wait_all_received());
        return messages_.finish();
    }

private:
    const member_call &call_;
    const group::node_layout &layout_;
    std::size_t own_node_;
    message_stream messages_;
    std::size_t from_;
    std::size_t to_;
};

status exchange_between_nodes(const member_call &call) {
    group::internode_comm &internode = *call.members.internode();
    two_level_call two_level{call.map.num_ranks(), call.map.self(), internode, call.args,
                             call.chosen,          call.signature,  {},        1};
    internode.current().begin(call.signature);
    DIOMP_TRY(internode.agree_on_call());
    block_plan const plan(call);
    std::vector<std::unique_ptr<pair_messages>> pairs;
    for (std::size_t from = 0; from < call.map.max_per_rank(); ++from) {
        for (std::size_t to = 0; to < call.map.max_per_rank(); ++to) {
            pairs.push_back(std::make_unique<pair_messages>(call, two_level, from, to));
            pairs.back()->post_recv(plan);
        }
    }
    for (auto const &each : pairs) {
        DIOMP_TRY(each->send(plan));
    }
    DIOMP_TRY(intra_node_exchange(call, internode.local_members(), internode.layout().local_members)
                  .run());
    for (auto const &each : pairs) {
        DIOMP_TRY(each->finish());
    }
    return {};
}

std::vector<std::uint32_t> all_ranks(const member_map &map) {
    std::vector<std::uint32_t> ranks(map.num_ranks());
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
        ranks[rank] = rank;
    }
    return ranks;
}

status exchange_blocks(const member_call &call) {
    if (call.members.internode() != nullptr) {
        return exchange_between_nodes(call);
    }
    return intra_node_exchange(call, call.members.local_members(), all_ranks(call.map)).run();
}

// Each member gets the sizes that the others send to it before any buffer is written.
status compare_sizes(const member_call &call) {
    std::size_t const k = call.map.max_per_rank();
    std::size_t const n = call.map.num_ranks();
    std::vector<std::uint64_t> own_sizes(n * k * k);
    std::vector<std::uint64_t> peer_sizes(n * k * k);
    for (std::size_t i = 0; i < call.map.num_own(); ++i) {
        for (std::size_t rank = 0; rank < n; ++rank) {
            for (std::size_t j = 0; j < call.map.num_members_of(rank); ++j) {
                own_sizes[(rank * k + j) * k + i] =
                    call.lists(i).src.nbytes[call.map.member(rank, j)];
            }
        }
    }
    DIOMP_TRY(call.run_ranks(operation::alltoall, peer_sizes.data(), own_sizes.data(),
                             k * k * sizeof(std::uint64_t)));
    std::optional<error> failure;
    std::uint64_t veto_detail = 0;
    for (std::size_t i = 0; i < call.map.num_own() && !failure; ++i) {
        for (std::size_t from = 0; from < call.map.size() && !failure; ++from) {
            std::uint64_t const sent =
                peer_sizes[(call.map.rank_of(from) * k + i) * k + call.map.index_in_rank(from)];
            std::size_t const wanted = call.lists(i).dst.nbytes[from];
            if (sent != wanted) {
                veto_detail = from;
                failure.emplace(OMPX_ERR_MISMATCH,
                                fmt::format("member {} expects {} bytes from member {}, which has "
                                            "{} for it",
                                            call.map.own(i), wanted, from, sent),
                                "src_nbytes of the sender and dst_nbytes of the receiver must "
                                "agree");
            }
        }
    }
    auto agreed = call.members.agree(
        call.signature, failure ? std::optional<std::uint64_t>(veto_detail) : std::nullopt);
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

// An in-place alltoall would overwrite data that others still have to read, so it uses a copy.
status run_member_exchange(const member_call &call) {
    if (call.args.what == operation::alltoallv) {
        DIOMP_TRY(compare_sizes(call));
        return exchange_blocks(call);
    }
    std::size_t const nbytes = call.map.size() * call.block_bytes();
    std::vector<endpoint_buffers> own(call.own.begin(), call.own.end());
    std::vector<std::unique_ptr<std::byte[]>> copies;
    for (endpoint_buffers &each : own) {
        if (call.args.what == operation::alltoall && each.src == each.dst && nbytes > 0) {
            copies.push_back(std::make_unique_for_overwrite<std::byte[]>(nbytes));
            std::memcpy(copies.back().get(), each.src, nbytes);
            each.src = copies.back().get();
        }
    }
    member_call const with_copies{call.members,    call.args,      own,
                                  call.chosen,     call.signature, call.reduce,
                                  call.unit_bytes, call.map};
    return exchange_blocks(with_copies);
}

} // namespace diomp::coll
