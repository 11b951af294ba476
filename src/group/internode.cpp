// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internode.h"

#include "group/internal/local_group.h"
#include "group/internal/matcher.h"

#include <bit>

namespace diomp::group {
namespace {

/// On fewer nodes each leader soon has a connection to the log2 others of its exchanges anyway.
constexpr std::size_t min_tree_nodes = 16;

} // namespace

internode_comm::internode_comm(messaging::engine &engine, matcher &messages, std::uint64_t group_id,
                               const node_layout &layout, local_group &local_members)
    : queues_(messages.queues()), group_id_(group_id), layout_(layout), local_(local_members),
      queue_(queues_.open(group_id)),
      current_(layout, queue_, local_.block_of(layout.own_local_index).awaited_rank),
      probe_(engine, messages, group_id, queue_, local_, current_),
      channel_(engine, messages, group_id, queue_, current_, probe_),
      arrivals_(local_, current_, probe_), payloads_(*this) {
    local_.barrier().disable_comparison();
    local_.keep_agreements();
}

internode_comm::~internode_comm() { queues_.close(group_id_); }

// The first agreement of a group finds no connections, and one at the end of the job does not repay
// them: two per node are enough for a tree, where a barrier by exchanges has log2 of the nodes.
bool internode_comm::prefers_tree() const {
    return layout_.num_nodes() >= min_tree_nodes &&
           (current_.number() == 1 || current_.signature().what == sync::operation::finalize);
}

void internode_comm::synchronize() {
    if (prefers_tree()) {
        combine_in_tree();
    } else {
        disseminate();
    }
}

// A binomial tree: the states go up to node 0, and the result comes back. A node's parent lacks the
// lowest set bit of its number, so all partners are partners of disseminate() too.
void internode_comm::combine_in_tree() {
    std::size_t const num = layout_.num_nodes();
    std::size_t const own = layout_.own_node;
    std::uint64_t const step_up = step_state;
    std::uint64_t const step_down = step_state + 1;
    std::size_t distance = 1;
    for (; distance < num && (own & distance) == 0; distance *= 2) {
        if (own + distance < num) {
            channel_.receive_with_state(current_.call_leader_of(own + distance), step_up, {});
        }
    }
    if (own != 0) {
        std::size_t const parent = current_.call_leader_of(own - distance);
        channel_.send_with_state(parent, step_up, {});
        channel_.receive_with_state(parent, step_down, {});
    }
    while ((distance /= 2) > 0) {
        if (own + distance < num) {
            channel_.send_with_state(current_.call_leader_of(own + distance), step_down, {});
        }
    }
}

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
    note_several_rounds();
    note_growth(true);
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
    note_growth(false);
    return {};
}

status internode_comm::agree_on_call() {
    arrivals_.arrive();
    if (current_.is_call_leader()) {
        arrivals_.gather();
        synchronize();
        arrivals_.publish_result();
    } else {
        arrivals_.wait_for_result();
    }
    return current_.outcome();
}

status internode_comm::arrive_and_wait(const sync::call_signature &call) {
    return make_call([&] {
        current_.begin(call);
        return agree_on_call();
    });
}

error internode_comm::broken_error() {
    return {OMPX_ERR_STATE,
            "the group cannot be used any more: its first large call has failed on some members",
            "create another group; raise DIOMP_TIMEOUT if the ranks are only slow"};
}

bool internode_comm::enter_call() {
    if (call_of_program_.is_in_progress) {
        return false;
    }
    ++call_of_program_.number;
    call_of_program_.is_in_progress = true;
    call_of_program_.has_several_rounds = call_of_program_.is_growing = false;
    call_of_program_.failure = 0;
    return true;
}

void internode_comm::leave_call() {
    constexpr unsigned max_steps_bits = 24; // of the numbers that a call takes
    call_of_program_.is_in_progress = false;
    if (call_of_program_.has_several_rounds && call_of_program_.failure != 0) [[unlikely]] {
        call_of_program_.is_broken = call_of_program_.is_growing;
        current_.give_up(call_of_program_.number << max_steps_bits);
        local_.barrier().restart().note_failure(call_of_program_.failure);
    }
}

void internode_comm::note_failure(int code) {
    if (code == OMPX_ERR_TIMEOUT || code == OMPX_ERR_PEER) {
        call_of_program_.failure = code;
    }
}

result<std::optional<veto>> internode_comm::agree(const sync::call_signature &call,
                                                  std::optional<std::uint64_t> own_veto) {
    DIOMP_TRY(make_call([&] {
        current_.begin(call);
        if (own_veto) {
            current_.raise_veto(*own_veto);
        }
        return agree_on_call();
    }));
    const call_state &state = current_.state();
    if (state.veto_member == call_state::no_member) {
        return std::optional<veto>{};
    }
    return std::optional{veto{state.veto_member, state.veto}};
}

} // namespace diomp::group
