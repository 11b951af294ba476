// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small calls, whose data travels with the messages of the agreement.
#include "coll/internal/doubling_order.h"
#include "coll/internal/two_level.h"
#include "coll/internal/two_level_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace diomp::coll {
namespace {

using sync::operation;

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
        call.internode.synchronize();
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

} // namespace

status two_level_small(two_level_call &call, bool wait_for_all) {
    switch (call.args.what) {
    case operation::bcast:
        return small_bcast(call, wait_for_all);
    case operation::reduce:
        return small_reduce(call, wait_for_all);
    default:
        return small_allreduce(call);
    }
}

} // namespace diomp::coll
