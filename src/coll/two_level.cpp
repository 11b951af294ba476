// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small calls, whose data travels with the messages of the agreement, and the choice by size.
#include "coll/internal/two_level.h"

#include "coll/internal/allreduce_choice.h"
#include "coll/internal/check.h"
#include "coll/internal/doubling_order.h"
#include "coll/internal/select.h"
#include "coll/internal/two_level_blocks.h"
#include "coll/internal/two_level_exchange.h"
#include "group/protocol_log.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace diomp::coll {
namespace {

using sync::operation;

/// Consecutive calls that a member may make without waiting for all others.
constexpr std::uint64_t calls_between_barriers = 32;
constexpr std::size_t max_small_bytes = group::arrival_protocol::max_stage_data_bytes;

/// Steps of small calls; they follow the steps of the agreement.
constexpr std::uint64_t step_small = group::step_state + 256;
constexpr std::uint64_t step_unfold = step_small + 63;

/// The data of a small call in scratch memory: the program's memory is not written before the call
/// has succeeded.
class small_call_data {
public:
    explicit small_call_data(const two_level_call &call)
        : call_(call), capacity_(std::max(max_small_bytes, call.block_bytes() + cache_line_bytes) /
                                 cache_line_bytes * cache_line_bytes),
          current_(call.internode.current()), channel_(call.internode.channel()),
          bytes_(channel_.scratch(2 * capacity_)), received_(bytes_ + capacity_) {}

    [[nodiscard]] std::byte *bytes() const { return bytes_; }
    [[nodiscard]] std::span<const std::byte> span() const { return {bytes_, call_.block_bytes()}; }

    /// Sends the data, or only the state if the call has failed already.
    void send_with_state(std::size_t node, std::uint64_t step) const {
        channel_.send_with_state(current_.call_leader_of(node), step,
                                 current_.is_clean() ? span() : std::span<const std::byte>{});
    }
    /// Receives the data. False if the call has failed.
    bool receive_with_state(std::size_t node, std::uint64_t step) {
        return channel_.receive_with_state(current_.call_leader_of(node), step,
                                           {bytes_, call_.block_bytes()});
    }
    /// Receives an operand and combines it with the own data.
    void combine(std::size_t node, std::uint64_t step, bool received_is_first) {
        if (!channel_.receive_with_state(current_.call_leader_of(node), step,
                                         {received_, call_.block_bytes()})) {
            return;
        }
        wait_sends();
        if (!current_.is_clean()) {
            return;
        }
        if (received_is_first) {
            std::swap(bytes_, received_);
        }
        call_.reduce.apply(bytes_, bytes_, received_, call_.args.amount);
    }
    /// Waits until sent data may be overwritten.
    void wait_sends() const {
        if (call_.block_bytes() > group::internode_channel::max_copied_bytes) {
            channel_.finish_sends_or_fail_call();
        }
    }
    /// Combines the operands of the members on this node. Call after arrival_protocol::gather.
    void reduce_intra_node() {
        std::size_t const own = call_.layout().own_local_index;
        if (call_.num_local() == 1) {
            std::memcpy(bytes_, call_.src(), call_.block_bytes());
            return;
        }
        const std::byte *mine = call_.src();
        if (reinterpret_cast<std::uintptr_t>(mine) % call_.unit_bytes != 0) {
            std::memcpy(received_, mine, call_.block_bytes());
            mine = received_;
        }
        reduce_in_order(
            call_.reduce, bytes_, call_.num_local(), call_.args.amount, [&](std::size_t index) {
                return index == own
                           ? mine
                           : call_.internode.arrivals().data_of(index, call_.block_bytes());
            });
    }

private:
    const two_level_call &call_;
    std::size_t capacity_;
    const group::current_call &current_;
    group::internode_channel &channel_;
    std::byte *bytes_;
    std::byte *received_;
};

/// The operand that a member publishes on its node; empty if it is alone there.
std::span<const std::byte> contribution(const two_level_call &call) {
    return call.num_local() == 1 ? std::span<const std::byte>{}
                                 : std::span(call.src(), call.block_bytes());
}

void allreduce_small_inter_node(const two_level_call &call, small_call_data &data) {
    doubling_order const order(call.num_nodes(), call.own_node());
    if (order.is_folded()) {
        data.send_with_state(order.fold_partner(), step_small);
        data.receive_with_state(order.fold_partner(), step_unfold);
        return;
    }
    if (order.folds()) {
        data.combine(order.fold_partner(), step_small, false);
    }
    for (std::size_t round = 0; round < order.num_rounds(); ++round) {
        std::size_t const partner = order.partner(round);
        data.send_with_state(partner, step_small + 1 + round);
        data.combine(partner, step_small + 1 + round, partner < call.own_node());
    }
    if (order.folds()) {
        data.send_with_state(order.fold_partner(), step_unfold);
    }
}

status small_allreduce(two_level_call &call) {
    group::current_call &current = call.internode.current();
    group::arrival_protocol &arrivals = call.internode.arrivals();
    current.begin(call.signature);
    arrivals.arrive(current.is_call_leader() ? std::span<const std::byte>{} : contribution(call));
    small_call_data data(call);
    const std::byte *result = nullptr;
    if (current.is_call_leader()) {
        arrivals.gather();
        if (current.is_clean()) {
            data.reduce_intra_node();
        }
        allreduce_small_inter_node(call, data);
        data.wait_sends();
        arrivals.publish_result(data.span());
        result = data.bytes();
    } else {
        arrivals.wait_for_result();
        result = arrivals.published_result(call.block_bytes());
    }
    DIOMP_TRY(current.outcome());
    std::memcpy(call.dst(), result, call.block_bytes());
    return {};
}

/// Starts a small call; all members wait for each other first if `wait_for_all`. False if that has
/// failed; then the failure has been published.
bool begin_small(two_level_call &call, bool wait_for_all, std::span<const std::byte> data) {
    group::current_call &current = call.internode.current();
    group::arrival_protocol &arrivals = call.internode.arrivals();
    current.begin(call.signature);
    arrivals.arrive(data);
    if (current.is_call_leader() && wait_for_all) {
        arrivals.gather();
        call.internode.disseminate();
        if (!current.is_clean()) {
            arrivals.publish_result();
            return false;
        }
    }
    return true;
}

void bcast_small_inter_node(two_level_call &call, small_call_data &data) {
    std::size_t const num = call.num_nodes();
    std::size_t const base = call.layout().node(call.root());
    std::size_t const number = (call.own_node() + num - base) % num;
    std::size_t bit = std::bit_ceil(num);
    if (call.is_root()) {
        std::memcpy(data.bytes(), call.dst(), call.block_bytes());
    } else {
        bit = number & (~number + 1); // the parent lacks the lowest set bit
        data.receive_with_state((number - bit + base) % num, step_small);
    }
    for (bit /= 2; bit > 0; bit /= 2) {
        if (number + bit < num) {
            data.send_with_state((number + bit + base) % num, step_small);
        }
    }
}

status small_bcast(two_level_call &call, bool wait_for_all) {
    group::current_call &current = call.internode.current();
    group::arrival_protocol &arrivals = call.internode.arrivals();
    if (!begin_small(call, wait_for_all, {})) {
        return current.outcome();
    }
    small_call_data data(call);
    const std::byte *result = data.bytes();
    // Data that does not fit into the stage buffers uses an intra-node bcast after the agreement.
    bool const fits = call.block_bytes() <= max_small_bytes;
    if (current.is_call_leader()) {
        if (!wait_for_all && fits && call.block_bytes() > sync::node_barrier::max_inline_bytes) {
            arrivals.reserve_result_slot(call.block_bytes());
        } else if (!wait_for_all && !fits) {
            arrivals.gather();
        }
        bcast_small_inter_node(call, data);
        data.wait_sends();
        arrivals.publish_result(fits ? data.span() : std::span<const std::byte>{});
    } else {
        arrivals.wait_for_result();
        result = fits ? arrivals.published_result(call.block_bytes()) : nullptr;
    }
    DIOMP_TRY(current.outcome());
    if (!call.is_root() && result != nullptr) {
        std::memcpy(call.dst(), result, call.block_bytes());
    }
    if (fits || call.num_local() == 1) {
        return {};
    }
    return call.run_intra_node(operation::bcast, call.dst(), nullptr, call.block_bytes(),
                               call.call_leader_index());
}

// A binomial tree that keeps the lower nodes' results on the left. Its root is the call's root if
// the operator commutes, so that the order may be rotated; else node 0, which sends the result to
// the root.
void reduce_small_inter_node(two_level_call &call, small_call_data &data) {
    std::size_t const num = call.num_nodes();
    std::size_t const root_node = call.layout().node(call.root());
    std::size_t const base = call.reduce.commutative ? root_node : 0;
    std::size_t const number = (call.own_node() + num - base) % num;
    for (std::size_t bit = 1; bit < num; bit *= 2) {
        if ((number & bit) != 0) {
            data.send_with_state((number - bit + base) % num, step_small);
            break;
        }
        if (number + bit < num) {
            data.combine((number + bit + base) % num, step_small, false);
        }
    }
    if (base == root_node) {
        return;
    }
    if (number == 0) {
        data.send_with_state(root_node, step_small + 1);
    } else if (call.own_node() == root_node) {
        data.receive_with_state(base, step_small + 1);
    }
}

status small_reduce(two_level_call &call, bool wait_for_all) {
    group::current_call &current = call.internode.current();
    group::arrival_protocol &arrivals = call.internode.arrivals();
    if (!begin_small(call, wait_for_all, contribution(call))) {
        return current.outcome();
    }
    small_call_data data(call);
    if (current.is_call_leader()) {
        if (!wait_for_all) {
            arrivals.gather();
        }
        if (current.is_clean()) {
            data.reduce_intra_node();
        }
        reduce_small_inter_node(call, data);
        data.wait_sends();
        arrivals.publish_result();
    } else if (wait_for_all) {
        arrivals.wait_for_result();
    }
    DIOMP_TRY(current.outcome());
    if (call.is_root()) {
        std::memcpy(call.dst(), data.bytes(), call.block_bytes());
    }
    return {};
}

/// Whether the data may travel in the messages of the agreement.
bool may_send_with_state(const two_level_call &call) {
    bool const long_elements = call.args.type == OMPX_LONG_DOUBLE;
    bool const leader_combines =
        !is_reduction(call.args.what) ||
        call.block_bytes() * std::ranges::max(call.layout().sizes) <= max_operands_bytes;
    return call.reduce.user == nullptr && !long_elements && call.args.amount > 0 &&
           leader_combines &&
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
        switch (call.args.what) {
        case operation::bcast:
            return small_bcast(call, wait_for_all);
        case operation::reduce:
            return small_reduce(call, wait_for_all);
        case operation::allreduce:
            return small_allreduce(call);
        default:
            break;
        }
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
    DIOMP_TRY(std::move(outcome));
    return call.internode.current().late_mismatch();
}

status two_level_call::run_intra_node(operation what, void *to, const void *from,
                                      std::size_t amount, int root_index) {
    request intra_node = args;
    intra_node.what = what;
    intra_node.dst = to;
    intra_node.src = from;
    intra_node.amount = amount;
    intra_node.root = root_index;
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
