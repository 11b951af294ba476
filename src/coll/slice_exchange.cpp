// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/slice_exchange.h"

#include "coll/internal/two_level_blocks.h"

#include <algorithm>
#include <bit>

namespace diomp::coll {
namespace {

/// Steps of the messages; they follow those of small calls.
constexpr std::uint64_t step_sliced = group::step_state + 384;
constexpr std::uint64_t messages_per_turn = 160;
// Numbers of messages of one sender in a chunk. Rounds count from 0, in both directions.
constexpr std::size_t message_back = 64;
constexpr std::size_t message_fold = 128;
constexpr std::size_t message_unfold = 129;
/// An operand whose parts would be smaller is one part: each costs a call per member of the node.
constexpr std::size_t min_part_bytes = 512;
static_assert(message_unfold < messages_per_turn);
static_assert(step_sliced + slice_exchange::num_turns * messages_per_turn <= group::step_payloads);

} // namespace

slice_exchange::slice_exchange(two_level_call &call, const slice &what, const slicing &how,
                               std::size_t chunk)
    : call_(call), channel_(call.internode.channel()), slice_(what), turn_(chunk % num_turns),
      next_received_(what.received) {
    if (how.is_direct) {
        plan_direct();
    } else {
        plan_rounds(how.num_halvings);
    }
    if (parts_.empty()) {
        parts_.push_back({0, slice_.count});
    }
}

// Messages of receives that are still posted would arrive in memory that may have been freed.
slice_exchange::~slice_exchange() {
    for (incoming &each : incoming_) {
        channel_.cancel(each.request);
    }
}

// Partitions of equal numbers of elements, or of lines of these, differ by one of them.
std::size_t slice_exchange::received_bytes(const slicing &how, std::size_t num_nodes,
                                           std::size_t slice_bytes, std::size_t unit_bytes) {
    auto const rounds = static_cast<std::size_t>(std::bit_width(num_nodes));
    std::size_t const whole = round_up(slice_bytes);
    std::size_t const difference = round_up(unit_bytes) + 2 * cache_line_bytes;
    if (how.is_direct) {
        return whole + num_nodes * difference;
    }
    // A fold, the halves, and what is left in each round that doubles.
    std::size_t const halves = how.num_halvings > 0 ? whole : 0;
    std::size_t const doubled = (whole >> how.num_halvings) + difference;
    return whole + halves + rounds * difference + (rounds - how.num_halvings) * doubled;
}

void slice_exchange::plan_rounds(std::size_t num_halvings) {
    doubling_order const order(call_.num_nodes(), call_.own_node());
    if (plan_fold(order)) {
        return;
    }
    std::size_t const num = std::size_t{1} << num_halvings;
    std::size_t kept = 0; // the first of the partitions that this node still reduces
    std::vector<std::size_t> given(num_halvings);
    for (std::size_t round = 0; round < num_halvings; ++round) {
        std::size_t const partner = order.partner(round);
        std::size_t const half = num >> (round + 1);
        bool const keeps_upper = partner < call_.own_node();
        given[round] = keeps_upper ? kept : kept + half;
        kept = keeps_upper ? kept + half : kept;
        if (round == 0 && !order.folds() && slice_bytes() >= 2 * min_part_bytes) {
            parts_ = {partitions(num, given[round], half), partitions(num, kept, half)};
        }
        add_send(partner, partitions(num, given[round], half), round, round + 1);
        add_operand(partner, partitions(num, kept, half), round, action::combine);
    }
    // Nodes that differ in later bits only have kept the same partition.
    for (std::size_t round = num_halvings; round < order.num_rounds(); ++round) {
        range const left = partitions(num, kept, 1);
        add_send(order.partner(round), left, round);
        add_operand(order.partner(round), left, round, action::combine_sent);
    }
    for (std::size_t round = num_halvings; round-- > 0;) {
        std::size_t const half = num >> (round + 1);
        add_send(order.partner(round), partitions(num, kept, half), message_back + round);
        // The partner has received what was sent from there.
        add_receive(order.partner(round), partitions(num, given[round], half), message_back + round,
                    true);
        kept = std::min(kept, given[round]);
    }
    plan_unfold(order);
}

void slice_exchange::plan_direct() {
    std::size_t const num = call_.num_nodes();
    std::size_t const own = call_.own_node();
    range const mine = partitions(num, own, 1);
    bool const has_parts = slice_bytes() >= num * min_part_bytes;
    for (std::size_t i = 1; i < num; ++i) {
        std::size_t const node = (own + i) % num;
        range const theirs = partitions(num, node, 1);
        if (has_parts) {
            parts_.push_back(theirs);
        }
        add_send(node, theirs, 0, i);
    }
    if (has_parts) {
        parts_.push_back(mine);
    }
    for (std::size_t node = 0; node < num; ++node) {
        if (node != own) {
            add_receive(node, mine, 0);
        }
    }
    steps_.push_back({action::combine_all, own, mine});
    for (std::size_t i = 1; i < num; ++i) {
        add_send((own + i) % num, mine, message_back);
    }
    for (std::size_t i = 1; i < num; ++i) {
        std::size_t const node = (own + num - i) % num;
        add_receive(node, partitions(num, node, 1), message_back, true);
    }
}

bool slice_exchange::plan_fold(const doubling_order &order) {
    range const all{0, slice_.count};
    if (order.is_folded()) {
        add_send(order.fold_partner(), all, message_fold);
        add_receive(order.fold_partner(), all, message_unfold, true);
    } else if (order.folds()) {
        add_operand(order.fold_partner(), all, message_fold, action::combine);
    }
    return order.is_folded();
}

void slice_exchange::plan_unfold(const doubling_order &order) {
    if (order.folds()) {
        add_send(order.fold_partner(), {0, slice_.count}, message_unfold);
    }
}

void slice_exchange::add_send(std::size_t node, range elements, std::size_t message,
                              std::size_t num_parts) {
    steps_.push_back({action::send, node, elements, message, num_parts});
}

void slice_exchange::add_receive(std::size_t node, range elements, std::size_t message,
                                 bool is_result) {
    incoming &made = incoming_.emplace_back();
    made.data = bytes_of(elements);
    if (!is_result) {
        made.data = {next_received_, made.data.size()};
        next_received_ += round_up(made.data.size());
    }
    channel_.post_recv_with_state(made.request, made.state, slice_.owners[node], tag_of(message),
                                  made.data);
    steps_.push_back({action::receive, node, elements, incoming_.size() - 1});
}

void slice_exchange::add_operand(std::size_t node, range elements, std::size_t message,
                                 action combination) {
    add_receive(node, elements, message);
    steps_.push_back({combination, node, elements, incoming_.size() - 1});
}

void slice_exchange::finish() {
    run_steps(true);
    channel_.finish_sends_or_fail_call();
}

void slice_exchange::abandon() {
    for (; next_step_ < steps_.size(); ++next_step_) {
        if (steps_[next_step_].what == action::send) {
            send(steps_[next_step_]);
        }
    }
}

void slice_exchange::run_steps(bool may_wait) {
    while (next_step_ < steps_.size() && has_parts_of(steps_[next_step_]) &&
           run_step(steps_[next_step_], may_wait)) {
        ++next_step_;
    }
}

bool slice_exchange::run_step(const exchange_step &next, bool may_wait) {
    switch (next.what) {
    case action::send:
        send(next);
        break;
    case action::receive:
        if (!may_wait && !channel_.has_arrived(incoming_[next.index].request)) {
            return false;
        }
        receive(next);
        break;
    case action::combine:
    case action::combine_sent:
        combine(next);
        break;
    case action::combine_all:
        combine_all(next);
        break;
    }
    return true;
}

void slice_exchange::send(const exchange_step &what) {
    bool const has_data = call_.internode.current().is_clean();
    channel_.send_with_state(slice_.owners[what.node], tag_of(what.index),
                             has_data ? std::span<const std::byte>(bytes_of(what.elements))
                                      : std::span<const std::byte>{});
}

void slice_exchange::receive(const exchange_step &what) {
    incoming &from = incoming_[what.index];
    channel_.finish_recv_with_state(from.request, from.state, slice_.owners[what.node]);
}

void slice_exchange::combine(const exchange_step &what) {
    if (!call_.internode.current().is_clean()) {
        return;
    }
    std::span<std::byte> const own = bytes_of(what.elements);
    if (what.what == action::combine_sent &&
        own.size() > group::internode_channel::max_copied_bytes) {
        channel_.finish_sends_or_fail_call(); // they read what the result overwrites
    }
    std::byte *const theirs = incoming_[what.index].data.data();
    // Both partners of doubling compute the same bits: the operand of the lower nodes is the first.
    if (what.node > call_.own_node()) {
        call_.reduce.apply(own.data(), own.data(), theirs, what.elements.count);
    } else {
        call_.reduce.apply_to_second(own.data(), theirs, own.data(), what.elements.count);
    }
}

// The receives of plan_direct are in the order of the nodes.
void slice_exchange::combine_all(const exchange_step &what) {
    if (!call_.internode.current().is_clean()) {
        return;
    }
    std::byte *const own = bytes_of(what.elements).data();
    reduce_blocks(call_, own, call_.num_nodes(), what.elements.count,
                  [&](std::size_t node) -> const std::byte * {
                      return node == what.node
                                 ? own
                                 : incoming_[node < what.node ? node : node - 1].data.data();
                  });
}

std::span<std::byte> slice_exchange::bytes_of(range elements) const {
    return {slice_.data + elements.begin * call_.unit_bytes, elements.count * call_.unit_bytes};
}

std::uint64_t slice_exchange::tag_of(std::size_t message) const {
    return step_sliced + turn_ * messages_per_turn + message;
}

range slice_exchange::partitions(std::size_t num, std::size_t first, std::size_t count) const {
    std::size_t const alignment = std::max<std::size_t>(1, cache_line_bytes / call_.unit_bytes);
    range const begin = partition_range(slice_.count, num, first, alignment);
    range const last = partition_range(slice_.count, num, first + count - 1, alignment);
    return {begin.begin, last.begin + last.count - begin.begin};
}

} // namespace diomp::coll
