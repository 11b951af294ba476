// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collective calls over several nodes. Within a node they use the algorithms for one node, between
// nodes letters of the speakers (group/bridge.h). N nodes, b bytes per member, n members:
//
//  call        size        between nodes                         letters out of a node, at most
//  bcast       b <= 64 KiB binomial tree, the root does not wait log2 N, b bytes
//              <= 1 MiB    agreement with those next in the      log2 N + 1
//                          tree, or chain where that is sooner   2
//                          done
//              larger      agreement; the same                   2 log2 N, log2 N + 1
//  reduce      b <= 8 KiB  binomial tree, the root waits         1, b bytes
//              larger      agreement; the same tree              log2 N + 1
//  allreduce   b <= 8 KiB; recursive doubling with agreement     log2 N, b bytes
//              64 KiB with
//              wide stages
//              < 128 KiB   agreement; recursive doubling         2 log2 N
//              larger      agreement; each node reduces a part   log2 N + 2 (N - 1), b / N bytes;
//                          and sends it to all                   where all nodes have m members
//                                                                m times as many of b / (N m)
//  alltoall    any         agreement; everybody to everybody     log2 N + one per pair of members
//  others      any         agreement; everybody sends the        log2 N + N - 1
//                          others what is for them
//
// "Agreement" is the meeting of group/bridge.h. Stages are wide where nodes have one member, and
// from the first larger allreduce on if all have the memory (bridge::widen_stages). Letters of more
// than 16 KiB, which are cut at 256 KiB, cost a small message more, from their receiver. Small
// calls in which nobody waits for all become meetings now and then, so that no member runs ahead
// for ever.
//
// Order: the operands of a node are combined in rank order, then those of the nodes in the order of
// their leaders. Where members of a node do not follow each other in the group and the operator
// does not commute, all operands are collected and combined in rank order.
#pragma once

#include "collective/execution.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

namespace diomp::collective {

/// A checked call on a group that spans nodes. The caller holds the group's turn.
struct spanning_call {
    std::size_t num_members;
    std::size_t self;
    group::bridge &across;
    const request &asked;
    const options &chosen;
    sync::call_signature signature;
    reducer reduce;
    std::size_t unit_bytes = 1;
    std::uint64_t phase = 0; ///< of letters; counted alike by all members

    [[nodiscard]] std::size_t root() const { return static_cast<std::size_t>(asked.root); }
    [[nodiscard]] bool is_root() const { return self == root(); }
    [[nodiscard]] std::size_t block_bytes() const { return asked.amount * unit_bytes; }
    [[nodiscard]] std::byte *dst() const { return static_cast<std::byte *>(asked.dst); }
    [[nodiscard]] const std::byte *src() const { return static_cast<const std::byte *>(asked.src); }
    [[nodiscard]] const group::node_layout &layout() const { return across.layout(); }
    [[nodiscard]] std::size_t num_nodes() const { return across.num_nodes(); }
    [[nodiscard]] std::size_t own_node() const { return across.own_node(); }
    [[nodiscard]] std::size_t num_here() const { return across.here().size(); }
    /// Of the member that speaks for the caller's node, among those of the node.
    [[nodiscard]] int speaker_place() const;
    [[nodiscard]] bool needs_rank_order() const {
        return !reduce.commutative && !layout().contiguous;
    }

    /// One call of the same kind among the members on this node.
    status run_near(sync::operation what, void *to, const void *from, std::size_t amount,
                    int root_place = -1);
};

/// Data between speakers, after agreement: cut into letters of a phase. Every member makes the
/// same phases; in one phase at most one stream goes from one member to another.
class stream {
public:
    using readiness = group::bridge::readiness;

    /// `how` is readiness::agreed where all letters are expected before the agreement.
    explicit stream(spanning_call &call, readiness how = readiness::told,
                    std::size_t letter_bytes = usual_letter_bytes)
        : across_(call.across), phase_(call.phase++), how_(how), letter_bytes_(letter_bytes) {}
    ~stream();
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;

    static constexpr std::size_t usual_letter_bytes = group::mailbox::landing_bytes;
    [[nodiscard]] std::size_t num_letters(std::size_t nbytes) const {
        return (nbytes + letter_bytes_ - 1) / letter_bytes_;
    }

    /// Returns the index of the first letter for await.
    std::size_t expect(std::size_t from, std::span<std::byte> data);
    /// The data must stay until finish.
    status send(std::size_t to, std::span<const std::byte> data);
    /// One letter of a stream.
    status send_letter(std::size_t to, std::span<const std::byte> data, std::size_t letter);
    status await(std::size_t index);
    status await_all();
    /// The first letter, before all agree (group::bridge::hear_unless_refused).
    bool hear_first(std::size_t from, std::uint64_t refusal) {
        return across_.hear_unless_refused(expected_.front(), from, refusal);
    }
    /// Waits for what has been sent.
    status finish() { return across_.finish_sends(); }

private:
    [[nodiscard]] std::uint64_t step(std::size_t letter) const {
        return group::step_data + (phase_ << 24) + letter;
    }

    group::bridge &across_;
    std::uint64_t phase_;
    readiness how_;
    std::size_t letter_bytes_;
    std::deque<group::receipt> expected_;
};

/// Elements [begin, begin + count) of every block at a time, so that `num_blocks` of them fit into
/// some scratch memory.
chunking cut_blocks(const spanning_call &call, std::size_t num_blocks);

status run_spanning(spanning_call &call);

// After across.begin: members tell where they want the data before they agree.
/// Everybody waits for everybody first, if `tight`.
status spanning_bcast(spanning_call &call, bool tight);
status spanning_allreduce(spanning_call &call);
// After agreement; each begins with its plan.
status spanning_reduce(spanning_call &call);
status spanning_reduce_scatter(spanning_call &call);
status spanning_gather(spanning_call &call);
status spanning_scatter(spanning_call &call);
status spanning_allgather(spanning_call &call);
status spanning_alltoall(spanning_call &call);

/// The parts of all members' blocks at `from`, `piece` units each: to[member] on every member.
status allgather_piece(spanning_call &call, std::byte *to, const std::byte *from,
                       std::size_t piece_bytes, std::byte *aside);

} // namespace diomp::collective
