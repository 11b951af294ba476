// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/block_exchange.h"
#include "coll/internal/check.h"

namespace diomp::coll {
namespace {

using sync::operation;

/// The offset of an empty block may have any value.
template <typename Byte>
std::span<Byte> block_of(Byte *begin, const block_list &blocks, std::size_t member) {
    std::size_t const nbytes = blocks.nbytes[member];
    return nbytes == 0 ? std::span<Byte>() : std::span(begin + blocks.offsets[member], nbytes);
}

/// The operation with equal block sizes that has the pattern of a v form.
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

} // namespace

std::optional<std::span<const std::byte>> block_plan::outgoing(std::size_t index,
                                                               std::size_t to) const {
    const request &args = call_.args;
    std::size_t const self = call_.map.own(index);
    const std::byte *const src = call_.src(index);
    auto const uniform = call_.block_bytes();
    const block_lists *const lists = has_block_lists(args.what) ? &call_.lists(index) : nullptr;
    switch (pattern_of(args.what)) {
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
                                : block_of(src, lists->src, to);
    }
}

std::optional<std::span<std::byte>> block_plan::incoming(std::size_t index,
                                                         std::size_t from) const {
    const request &args = call_.args;
    std::size_t const self = call_.map.own(index);
    std::byte *const dst = call_.dst(index);
    auto const uniform = call_.block_bytes();
    const block_lists *const lists = has_block_lists(args.what) ? &call_.lists(index) : nullptr;
    switch (pattern_of(args.what)) {
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
        return lists == nullptr ? std::span(dst + from * uniform, uniform)
                                : block_of(dst, lists->dst, from);
    }
}

bool block_plan::same_for_all() const {
    operation const pattern = pattern_of(call_.args.what);
    return pattern == operation::gather || pattern == operation::allgather;
}

bool block_plan::sends(std::size_t rank) const {
    return pattern_of(call_.args.what) != operation::scatter ||
           call_.map.rank_of(call_.root()) == rank;
}

} // namespace diomp::coll
