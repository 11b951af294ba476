// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls in which ranks act for several endpoints, and the v forms and scans, which have one
// implementation for ranks and endpoints. They use calls of ranks where possible.
//
//  bcast            large, on one node, buffers in the arena: every rank writes its own endpoints'
//                   buffers, or its partition of all, from the root's. Else a bcast from the root's
//                   rank to all ranks, then each rank copies to its other endpoints
//  reductions       large, on one node, buffers in the arena: every rank reduces a partition of all
//                   endpoints' operands into all results, with one barrier round before and one
//                   after. Else each rank combines its own operands, then the ranks reduce
//  scans            every rank gets all operands, in chunks
//  others, v        block_exchange.h
#pragma once

#include "coll/internal/execution.h"
#include "coll/internal/member_map.h"

#include <span>

namespace diomp::coll {

/// A checked call. The caller holds the group's call lock.
struct member_call {
    group::group &members;
    const request &args; ///< except its buffers
    std::span<const endpoint_buffers> own;
    const options &chosen;
    sync::call_signature signature;
    reducer reduce;
    std::size_t unit_bytes = 1;
    member_map map;

    [[nodiscard]] std::size_t block_bytes() const { return args.amount * unit_bytes; }
    [[nodiscard]] std::size_t root() const { return static_cast<std::size_t>(args.root); }
    [[nodiscard]] bool owns_root() const {
        return args.root >= 0 && map.rank_of(root()) == map.self();
    }
    [[nodiscard]] std::byte *dst(std::size_t index) const {
        return static_cast<std::byte *>(own[index].dst);
    }
    [[nodiscard]] const std::byte *src(std::size_t index) const {
        return static_cast<const std::byte *>(own[index].src);
    }
    /// The lists of a v form.
    [[nodiscard]] const block_lists &lists(std::size_t index) const {
        return lists_of(args, own[index]);
    }
    /// Runs a call of ranks as a step of this call.
    status run_ranks(sync::operation what, void *to, const void *from, std::size_t amount,
                     std::size_t root_rank = 0) const;
};

/// A checked call of ranks that is not a v form or scan. `args.amount` counts units.
status run_ranks(group::group &members, const request &args, const options &chosen,
                 sync::call_signature signature, const reducer &reduce, std::size_t unit_bytes);

status run_member_call(const member_call &call);

// The algorithms of run_member_call.
status run_member_exchange(const member_call &call); ///< block_exchange.cpp
status run_member_bcast(const member_call &call);
status run_member_reduction(const member_call &call);
status run_member_scan(const member_call &call);

} // namespace diomp::coll
