// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two-level collectives on groups that span nodes. Within a node they use the algorithms for one
// node; between nodes the call leaders exchange messages (group/internode.h). N nodes, b bytes per
// member, n members:
//
//  call        size        between nodes                         messages sent per node, at most
//  bcast       b <= 64 KiB binomial tree, the root does not wait log2 N, b bytes
//              <= 1 MiB    agreement with the neighbours in the  log2 N + 1
//                          tree, or chain where that is faster   2
//              larger      agreement; tree or chain              2 log2 N, log2 N + 1
//  reduce      b <= 8 KiB  binomial tree, the root waits         1, b bytes
//              larger      agreement; binomial tree              log2 N + 1
//  allreduce   nodes of 5 or more members, where the model of allreduce_choice.h says so:
//              slices, with the agreement in their messages      at every member log2 N or more
//              b <= 8 KiB; recursive doubling with agreement     log2 N, b bytes
//              64 KiB with
//              large stage
//              buffers
//              < 128 KiB   agreement; recursive doubling         2 log2 N
//              larger      agreement; reduce-scatter and         log2 N + 2 (N - 1), b / N bytes;
//                          allgather between the nodes           if all nodes have m members
//                                                                m times as many of b / (N m)
//  alltoall    small       two_level_exchange.h; between 16 or more
//                          nodes of one member each Bruck's
//                          algorithm, b <= 256               2 log2 N, n b / 2 bytes
//              larger      agreement; pairwise exchange          log2 N + one per pair of members
//  allgather   any         two_level_exchange.h, if the members
//                          of each node have consecutive ranks
//  others      any         agreement; pairwise exchange of the   log2 N + N - 1
//                          nodes' data
//
// "Agreement" is the barrier of group/internode.h. Stage buffers are large on nodes with
// one member, and from the first larger allreduce on if all nodes have the memory
// (internode_comm::grow_stage_buffers). Messages of more than 16 KiB, which are split at 256 KiB,
// cost one more control message, the receiver's RTR. Small calls in which no member waits for all
// become barriers at intervals, so that no member runs ahead without limit.
//
// Order: the operands of a node are combined in rank order, then those of the nodes in the order of
// their leaders. If the members of a node do not have consecutive group ranks and the operator does
// not commute, all operands are gathered and combined in rank order.
#pragma once

#include "coll/algorithm.h"
#include "coll/internal/execution.h"
#include "group/internode.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

namespace diomp::coll {

struct allreduce_choice;

/// Data of this size travels with the messages of the agreement without stage buffers.
inline constexpr std::size_t max_small_bytes = group::arrival_protocol::max_stage_data_bytes;

/// A checked call on a group that spans nodes. The caller holds the group's call lock.
struct two_level_call {
    std::size_t num_members;
    std::size_t self;
    group::internode_comm &internode;
    const request &args;
    const options &chosen;
    sync::call_signature signature;
    reducer reduce;
    std::size_t unit_bytes = 1;
    std::uint64_t phase = 0; ///< of messages; equal on all members
    /// Between nodes, of the source of choices.
    std::optional<algorithm_choice> choice = std::nullopt;

    [[nodiscard]] std::size_t root() const { return static_cast<std::size_t>(args.root); }
    [[nodiscard]] bool is_root() const { return self == root(); }
    [[nodiscard]] std::size_t block_bytes() const { return args.amount * unit_bytes; }
    [[nodiscard]] std::byte *dst() const { return static_cast<std::byte *>(args.dst); }
    [[nodiscard]] const std::byte *src() const { return static_cast<const std::byte *>(args.src); }
    [[nodiscard]] const group::node_layout &layout() const { return internode.layout(); }
    [[nodiscard]] std::size_t num_nodes() const { return layout().num_nodes(); }
    [[nodiscard]] std::size_t own_node() const { return layout().own_node; }
    [[nodiscard]] std::size_t num_local() const { return internode.local_members().size(); }
    /// Local index of the call leader of the caller's node.
    [[nodiscard]] int call_leader_index() const {
        return static_cast<int>(internode.current().call_leader_index());
    }
    /// Whether the source has chosen `method`; `otherwise` if it has chosen none.
    [[nodiscard]] bool takes(algorithm method, bool otherwise) const {
        return choice ? choice->method == method : otherwise;
    }
    [[nodiscard]] bool needs_rank_order() const {
        return !reduce.commutative && !layout().contiguous;
    }

    /// Runs an intra-node call of the same kind among the members on this node.
    status run_intra_node(sync::operation what, void *to, const void *from, std::size_t amount,
                          int root_index = -1);
};

/// Data between call leaders, after the agreement: split into the messages of a phase. Every member
/// runs the same phases; in one phase at most one stream goes from one member to another.
class message_stream {
public:
    using rtr_mode = group::internode_channel::rtr_mode;

    /// `rtr` is rtr_mode::implied if all receives are posted before the agreement.
    explicit message_stream(two_level_call &call, rtr_mode rtr = rtr_mode::announced,
                            std::size_t message_bytes = default_message_bytes)
        : channel_(call.internode.channel()), phase_(call.phase++), rtr_(rtr),
          message_bytes_(message_bytes) {}
    ~message_stream();
    message_stream(const message_stream &) = delete;
    message_stream &operator=(const message_stream &) = delete;

    static constexpr std::size_t default_message_bytes = group::rndv_buffers::buffer_bytes;
    [[nodiscard]] std::size_t num_messages(std::size_t nbytes) const {
        return (nbytes + message_bytes_ - 1) / message_bytes_;
    }

    /// Posts the receives. Returns the index of the first one for wait_received.
    std::size_t post_recv(std::size_t from, std::span<std::byte> data);
    /// The data must stay unchanged until finish.
    status send(std::size_t to, std::span<const std::byte> data);
    /// Sends one message of a stream.
    status send_message(std::size_t to, std::span<const std::byte> data, std::size_t message);
    status wait_received(std::size_t index);
    status wait_all_received();
    /// Receives the first message before the agreement (internode_channel::receive_unless_refused).
    bool receive_first(std::size_t from, std::uint64_t refusal) {
        return channel_.receive_unless_refused(requests_.front(), from, refusal);
    }
    /// Waits until all sends are complete.
    status finish() { return channel_.finish_sends(); }

private:
    [[nodiscard]] std::uint64_t step(std::size_t message) const {
        return group::step_data + (phase_ << 24) + message;
    }

    group::internode_channel &channel_;
    std::uint64_t phase_;
    rtr_mode rtr_;
    std::size_t message_bytes_;
    std::deque<group::recv_request> requests_;
};

/// Writes the algorithm between nodes into the protocol log.
void log_algorithm(algorithm method);

/// Splits the blocks of a call into chunks of at most `nbytes`.
chunking chunks_of(const two_level_call &call, std::size_t nbytes);
/// Chunks of which `num_blocks` fit into the scratch memory.
inline chunking chunk_blocks(const two_level_call &call, std::size_t num_blocks) {
    return chunks_of(call, (std::size_t{2} << 20) / num_blocks);
}

status run_two_level(two_level_call &call);

// Call after internode.begin: receives are posted before the agreement.
/// A bcast, reduce or allreduce whose data travels with the messages of the agreement. All members
/// wait for each other first if `wait_for_all`.
status two_level_small(two_level_call &call, bool wait_for_all);
/// All members wait for each other first if `wait_for_all`.
status two_level_bcast(two_level_call &call, bool wait_for_all);
status two_level_allreduce(two_level_call &call);
/// Includes the agreement.
status two_level_sliced_allreduce(two_level_call &call, const allreduce_choice &chosen);
// Call after the agreement.
status two_level_reduce(two_level_call &call);
status two_level_reduce_scatter(two_level_call &call);
status two_level_gather(two_level_call &call);
status two_level_scatter(two_level_call &call);
status two_level_allgather(two_level_call &call);
status two_level_alltoall(two_level_call &call);

/// Gathers the chunks at `from` of all members: to[member] on every member.
status allgather_chunk(two_level_call &call, std::byte *to, const std::byte *from,
                       std::size_t chunk_bytes, std::byte *scratch);

} // namespace diomp::coll
