// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls in which ranks act for several endpoints, and those that exist in one form for both: with
// sizes of their own (v), and scans. They stand on the calls of ranks where those do.
//
//  bcast            large ones on one node whose buffers lie in the window: every rank writes its
//  own
//                   endpoints' buffers, or its share of all, from the root's. Else the rank of the
//                   root to all ranks, then each to its other endpoints
//  reductions       large ones on one node whose buffers lie in the window: every rank reduces a
//                   part of all endpoints' operands into all results, one meeting before and one
//                   after. Else each rank combines its own, then the ranks do
//  scans            every rank gets all operands, in pieces
//  others, v        moves.h
#pragma once

#include "collective/execution.h"
#include "collective/roles.h"

#include <span>

namespace diomp::collective {

/// A checked call. The caller holds the group's turn.
struct member_call {
    group::group &members;
    const request &asked; ///< but for its buffers
    std::span<const endpoint_buffers> own;
    const options &chosen;
    sync::call_signature signature;
    reducer reduce;
    std::size_t unit_bytes = 1;
    roles who;

    [[nodiscard]] std::size_t block_bytes() const { return asked.amount * unit_bytes; }
    [[nodiscard]] std::size_t root() const { return static_cast<std::size_t>(asked.root); }
    [[nodiscard]] bool plays_root() const {
        return asked.root >= 0 && who.rank_of(root()) == who.self();
    }
    [[nodiscard]] std::byte *dst(std::size_t place) const {
        return static_cast<std::byte *>(own[place].dst);
    }
    [[nodiscard]] const std::byte *src(std::size_t place) const {
        return static_cast<const std::byte *>(own[place].src);
    }
    /// Of a v form.
    [[nodiscard]] const block_lists &lists(std::size_t place) const {
        return lists_of(asked, own[place]);
    }
    /// A call of the ranks, each for itself, as a part of this one.
    status run_ranks(sync::operation what, void *to, const void *from, std::size_t amount,
                     std::size_t root_rank = 0) const;
};

/// A checked call of ranks that is not a v form or scan. `asked.amount` counts units.
status run_ranks(group::group &members, const request &asked, const options &chosen,
                 sync::call_signature signature, const reducer &reduce, std::size_t unit_bytes);

status run_members(const member_call &call);

// What run_members chooses from.
status run_member_moves(const member_call &call); ///< moves.cpp
status run_member_bcast(const member_call &call);
status run_member_reduction(const member_call &call);
status run_member_scan(const member_call &call);

} // namespace diomp::collective
