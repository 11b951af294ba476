// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internode.h"

#include "group/internal/local_group.h"
#include "group/internal/matcher.h"

#include <bit>

namespace diomp::group {

internode_comm::internode_comm(messaging::engine &engine, matcher &messages, std::uint64_t group_id,
                               const node_layout &layout, local_group &local_members)
    : queues_(messages.queues()), group_id_(group_id), layout_(layout), local_(local_members),
      queue_(queues_.open(group_id)),
      current_(layout, queue_, local_.block_of(layout.own_local_index).awaited_rank),
      probe_(engine, messages, group_id, queue_, local_, current_),
      channel_(engine, messages, group_id, queue_, current_, probe_),
      arrivals_(local_, current_, probe_), payloads_(*this) {
    local_.barrier().disable_comparison();
}

internode_comm::~internode_comm() { queues_.close(group_id_); }

// Dissemination barrier: after round r a node has the states of the 2^(r+1) - 1 nodes before it,
// directly or through others. If the number of nodes is a power of two, pairs exchange instead:
// then it has those of the nodes whose numbers differ in the last r + 1 bits, and each round waits
// for one other node only.
void internode_comm::disseminate() {
    std::size_t const num = layout_.num_nodes();
    std::size_t const own = layout_.own_node;
    bool const in_pairs = std::has_single_bit(num);
    std::uint64_t step = step_state;
    for (std::size_t distance = 1; distance < num; distance *= 2, ++step) {
        channel_.send_with_state(
            current_.call_leader_of(in_pairs ? own ^ distance : (own + distance) % num), step, {});
        channel_.receive_with_state(
            current_.call_leader_of(in_pairs ? own ^ distance : (own + num - distance) % num), step,
            {});
    }
}

status internode_comm::grow_stage_buffers(const sync::call_signature &call,
                                          std::size_t stage_buffer_bytes,
                                          std::size_t buffer_half_bytes) {
    bool const is_only_local_member = local_.size() == 1;
    current_.begin(call);
    DIOMP_TRY(agree_on_call());
    if (!is_only_local_member && local_.stage_buffers().may_grow()) {
        DIOMP_TRY(local_.grow_stage_buffers(call, stage_buffer_bytes, buffer_half_bytes));
    }
    bool const has = is_only_local_member || local_.stage_buffers().buffer_bytes() >=
                                                 arrival_protocol::max_data_with_state_bytes;
    auto veto =
        agree(call, has ? std::nullopt
                        : std::optional<std::uint64_t>(local_.stage_buffers().buffer_bytes()));
    DIOMP_TRY(veto);
    has_large_stage_buffers_ = !veto.value().has_value();
    return {};
}

status internode_comm::agree_on_call() {
    arrivals_.arrive();
    if (current_.is_call_leader()) {
        arrivals_.gather();
        disseminate();
        arrivals_.publish_result();
    } else {
        arrivals_.wait_for_result();
    }
    return current_.outcome();
}

status internode_comm::arrive_and_wait(const sync::call_signature &call) {
    current_.begin(call);
    DIOMP_TRY(agree_on_call());
    return current_.late_mismatch();
}

result<std::optional<veto>> internode_comm::agree(const sync::call_signature &call,
                                                  std::optional<std::uint64_t> own_veto) {
    current_.begin(call);
    if (own_veto) {
        current_.raise_veto(*own_veto);
    }
    DIOMP_TRY(agree_on_call());
    const call_state &state = current_.state();
    if (state.veto_member == call_state::no_member) {
        return std::optional<veto>{};
    }
    return std::optional{veto{state.veto_member, state.veto}};
}

} // namespace diomp::group
