// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The choice among the algorithms between nodes.
#include "coll/internal/two_level.h"

#include "coll/internal/allreduce_choice.h"
#include "coll/internal/check.h"
#include "coll/internal/select.h"
#include "coll/internal/two_level_blocks.h"
#include "coll/internal/two_level_exchange.h"
#include "group/protocol_log.h"

#include <algorithm>
#include <utility>

namespace diomp::coll {
namespace {

using sync::operation;

/// Consecutive calls that a member may make without waiting for all others.
constexpr std::uint64_t calls_between_barriers = 32;

/// Whether the data may travel in the messages of the agreement.
bool may_send_with_state(const two_level_call &call) {
    bool const has_small_form = call.args.what == operation::bcast ||
                                call.args.what == operation::reduce ||
                                call.args.what == operation::allreduce;
    bool const long_elements = call.args.type == OMPX_LONG_DOUBLE;
    bool const leader_combines =
        !is_reduction(call.args.what) ||
        call.block_bytes() * std::ranges::max(call.layout().sizes) <= max_operands_bytes;
    return has_small_form && call.reduce.user == nullptr && !long_elements &&
           call.args.amount > 0 && leader_combines &&
           call.block_bytes() <= group::arrival_protocol::max_data_with_state_bytes;
}

/// Whether operands up to max_data_with_state_bytes fit into the stage buffers, or each node has
/// one member. The first larger allreduce tries to grow the stage buffers.
result<bool> has_stage_buffers(two_level_call &call) {
    if (call.num_members == call.num_nodes()) {
        return true;
    }
    if (!call.internode.has_large_stage_buffers()) {
        DIOMP_TRY(call.internode.grow_stage_buffers(call.signature, large_stage_bytes,
                                                    call.chosen.stage_buffer_half_bytes));
    }
    return *call.internode.has_large_stage_buffers();
}

/// Equal on all members: depends on the signature, the layout and earlier calls.
result<bool> is_small(two_level_call &call) {
    if (!call.takes(algorithm::with_agreement, true)) {
        return false;
    }
    if (!may_send_with_state(call) || call.block_bytes() <= max_small_bytes) {
        return may_send_with_state(call);
    }
    return call.args.what == operation::allreduce ? has_stage_buffers(call)
                                                  : call.args.what == operation::bcast;
}

/// Equal on all members, as is_small.
result<allreduce_choice> sliced_choice(two_level_call &call) {
    if (call.args.what != operation::allreduce || !call.takes(algorithm::sliced, true) ||
        call.needs_rank_order()) {
        return allreduce_choice{};
    }
    auto const [min_local, max_local] = std::ranges::minmax(call.layout().sizes);
    slicing_options slicing = call.chosen.slicing;
    slicing.always = call.takes(algorithm::sliced, false);
    allreduce_choice const chosen =
        choose_allreduce({call.num_nodes(), min_local, max_local, call.args.amount, call.unit_bytes,
                          slicing, costs_or_usual(call.chosen.costs)});
    if (chosen.is_sliced && chosen.stage_bytes > max_small_bytes) {
        auto has_memory = has_stage_buffers(call);
        DIOMP_TRY(has_memory);
        return has_memory.value() ? chosen : allreduce_choice{};
    }
    return chosen;
}

status run_large(two_level_call &call, bool wait_for_all) {
    call.internode.note_several_rounds();
    call.internode.current().begin(call.signature);
    if (call.args.amount > 0 && call.args.what == operation::bcast) {
        return two_level_bcast(call, wait_for_all);
    }
    if (call.args.amount > 0 && call.args.what == operation::allreduce) {
        return two_level_allreduce(call);
    }
    DIOMP_TRY(call.internode.agree_on_call());
    if (call.args.amount == 0) {
        return {};
    }
    switch (call.args.what) {
    case operation::reduce:
        return two_level_reduce(call);
    case operation::reduce_scatter:
        return two_level_reduce_scatter(call);
    case operation::gather:
        return two_level_gather(call);
    case operation::scatter:
        return two_level_scatter(call);
    case operation::allgather:
        return two_level_allgather(call);
    default:
        return two_level_alltoall(call);
    }
}

/// Whether the members and elements of the call allow the algorithm. Equal on all members.
bool can_take(const two_level_call &call, algorithm method) {
    switch (method) {
    case algorithm::with_agreement:
        return may_send_with_state(call);
    case algorithm::reduce_scatter_allgather:
        return message_stream::default_message_bytes % call.unit_bytes == 0;
    case algorithm::bruck:
        return call.args.what == operation::alltoall ? has_one_member_each(call) : has_ranges(call);
    case algorithm::direct:
        return has_ranges(call);
    case algorithm::by_nodes:
        return has_alike_nodes(call);
    case algorithm::sliced:
        return std::ranges::min(call.layout().sizes) >= 2 && !call.needs_rank_order();
    default:
        return true;
    }
}

void choose_between_nodes(two_level_call &call) {
    if (call.chosen.source == nullptr) [[likely]] {
        return;
    }
    auto const choice =
        call.chosen.source->choose({call.args.what, network_level::nodes, call.num_members,
                                    call.num_nodes(), call.block_bytes()});
    if (choice && can_take(call, choice->method)) {
        call.choice = choice;
    }
}

status run_by_size(two_level_call &call) {
    choose_between_nodes(call);
    bool const wait_for_all = call.chosen.check_all_members ||
                              (call.internode.current().number() + 1) % calls_between_barriers == 0;
    auto sliced = sliced_choice(call);
    DIOMP_TRY(sliced);
    if (sliced.value().is_sliced) {
        log_algorithm(algorithm::sliced);
        call.internode.note_several_rounds();
        call.internode.current().begin(call.signature);
        return two_level_sliced_allreduce(call, sliced.value());
    }
    if (call.takes(algorithm::sliced, false)) {
        call.choice.reset(); // too small, or no memory: the built-in rules choose
    }
    auto small = is_small(call);
    DIOMP_TRY(small);
    if (call.takes(algorithm::with_agreement, false)) {
        call.choice.reset(); // of the data that does not fit, the built-in rules choose
    }
    bool const is_grouped =
        call.args.what == operation::alltoall &&
        grouped_chunk_bytes(call, group::arrival_protocol::max_data_with_state_bytes) > 0;
    if (is_grouped) {
        DIOMP_TRY(has_stage_buffers(call));
    }
    group::log_protocol(
        "call {}: block of {} bytes, {}", call.internode.current().number() + 1, call.block_bytes(),
        small.value() ? "data travels with the agreement" : "data after the agreement");
    if (small.value()) {
        return two_level_small(call, wait_for_all);
    }
    return run_large(call, wait_for_all);
}

} // namespace

void log_algorithm(algorithm method) {
    group::log_protocol("    between nodes: {}", name_of(method));
}

status run_two_level(two_level_call &call) {
    status outcome = run_by_size(call);
    if (group::logs_protocol()) [[unlikely]] {
        group::log_protocol("call {}: {}", call.internode.current().number(),
                            outcome ? "done" : outcome.failure().message());
    }
    return outcome;
}

status two_level_call::run_intra_node(operation what, void *to, const void *from,
                                      std::size_t amount, int root_index) {
    request intra_node = args;
    intra_node.what = what;
    intra_node.dst = to;
    intra_node.src = from;
    intra_node.amount = amount;
    intra_node.root = root_index;
    if (!is_reduction(what)) {
        intra_node.type = {}; // a part of a reduction that moves bytes
    }
    // A scheduler time slice is small compared to the network, so few large steps are used.
    options few_steps = chosen;
    few_steps.oversubscribed = true;
    execution inner{internode.local_members(), intra_node, few_steps,
                    signature_of(intra_node),  {},         1};
    if (is_reduction(what)) {
        inner.reduce = reduce;
        inner.unit_bytes = unit_bytes;
    }
    return run_intra_node_call(inner);
}

} // namespace diomp::coll
