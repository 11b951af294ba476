// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small calls, whose data travels with the letters of the agreement, and the choice between them
// and the larger ones.
#include "collective/spanning.h"

#include "collective/check.h"
#include "collective/select.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace diomp::collective {
namespace {

using sync::operation;

/// Calls in a row that a member may make without waiting for all others.
constexpr std::uint64_t calls_between_meetings = 32;
constexpr std::size_t most_small_bytes = group::bridge::most_data_bytes;

/// Steps of small calls after those of the agreement.
constexpr std::uint64_t step_small = group::step_state + 256;
constexpr std::uint64_t step_unfold = step_small + 63;

/// The data of a small call, in scratch memory: nothing of the program's is written before all is
/// known to be well.
class small_data {
public:
    explicit small_data(const spanning_call &call)
        : call_(call), room_(std::max(most_small_bytes, call.block_bytes() + cache_line_bytes) /
                             cache_line_bytes * cache_line_bytes),
          bytes_(call.across.scratch(2 * room_)), heard_(bytes_ + room_) {}

    [[nodiscard]] std::byte *bytes() const { return bytes_; }
    [[nodiscard]] std::span<const std::byte> span() const { return {bytes_, call_.block_bytes()}; }

    /// Nothing but the state, if that has failed already.
    void tell(std::size_t node, std::uint64_t step) const {
        group::bridge &across = call_.across;
        across.tell(across.speaker_of(node), step,
                    across.is_clean() ? span() : std::span<const std::byte>{});
    }
    /// False if something has failed.
    bool hear(std::size_t node, std::uint64_t step) {
        return call_.across.hear(call_.across.speaker_of(node), step,
                                 {bytes_, call_.block_bytes()});
    }
    /// The same, and combines what comes with what is here.
    void combine(std::size_t node, std::uint64_t step, bool heard_is_first) {
        group::bridge &across = call_.across;
        if (!across.hear(across.speaker_of(node), step, {heard_, call_.block_bytes()})) {
            return;
        }
        settle();
        if (!across.is_clean()) {
            return;
        }
        if (heard_is_first) {
            std::swap(bytes_, heard_);
        }
        call_.reduce.apply(bytes_, bytes_, heard_, call_.asked.amount);
    }
    /// What has been told may be overwritten.
    void settle() const {
        if (call_.block_bytes() > group::bridge::most_copied_bytes) {
            call_.across.settle_sends();
        }
    }
    /// The operands of the members on this node, after collect.
    void reduce_near() {
        std::size_t const own = call_.layout().own_place;
        if (call_.num_here() == 1) {
            std::memcpy(bytes_, call_.src(), call_.block_bytes());
            return;
        }
        const std::byte *mine = call_.src();
        if (reinterpret_cast<std::uintptr_t>(mine) % call_.unit_bytes != 0) {
            std::memcpy(heard_, mine, call_.block_bytes());
            mine = heard_;
        }
        reduce_in_order(
            call_.reduce, bytes_, call_.num_here(), call_.asked.amount, [&](std::size_t place) {
                return place == own ? mine : call_.across.brought_by(place, call_.block_bytes());
            });
    }

private:
    const spanning_call &call_;
    std::size_t room_;
    std::byte *bytes_;
    std::byte *heard_;
};

/// What a member shows the others on its node, if there are any.
std::span<const std::byte> brings(const spanning_call &call) {
    return call.num_here() == 1 ? std::span<const std::byte>{}
                                : std::span(call.src(), call.block_bytes());
}

// Recursive doubling: in round r a node exchanges what it has with the one whose number differs in
// bit r, so all combine the same pairs in the same order. If N is no power of two, the first 2 (N -
// 2^k) nodes fold into half as many before, and the folded ones get the result after.
void exchange_small(spanning_call &call, small_data &data) {
    std::size_t const num = call.num_nodes();
    std::size_t const own = call.own_node();
    std::size_t const num_doubling = std::bit_floor(num);
    std::size_t const num_folded = num - num_doubling;
    std::uint64_t step = step_small;
    bool const folds = own < 2 * num_folded;
    if (folds && own % 2 == 1) {
        data.tell(own - 1, step);
        data.hear(own - 1, step_unfold);
        return;
    }
    if (folds) {
        data.combine(own + 1, step, false);
    }
    std::size_t const number = folds ? own / 2 : own - num_folded;
    for (std::size_t bit = 1; bit < num_doubling; bit *= 2) {
        ++step;
        std::size_t const other = number ^ bit;
        std::size_t const partner = other < num_folded ? 2 * other : other + num_folded;
        data.tell(partner, step);
        data.combine(partner, step, partner < own);
    }
    if (folds) {
        data.tell(own + 1, step_unfold);
    }
}

status small_allreduce(spanning_call &call) {
    group::bridge &across = call.across;
    across.begin(call.signature);
    across.enter(across.speaks() ? std::span<const std::byte>{} : brings(call));
    small_data data(call);
    const std::byte *result = nullptr;
    if (across.speaks()) {
        across.collect();
        if (across.is_clean()) {
            data.reduce_near();
        }
        exchange_small(call, data);
        data.settle();
        across.announce(data.span());
        result = data.bytes();
    } else {
        across.follow();
        result = across.announced(call.block_bytes());
    }
    DIOMP_TRY(across.outcome());
    std::memcpy(call.dst(), result, call.block_bytes());
    return {};
}

/// Everybody waits for everybody first, if `tight`. False if that has failed: then there is nothing
/// to say but so.
bool begin_small(spanning_call &call, bool tight, std::span<const std::byte> data) {
    group::bridge &across = call.across;
    across.begin(call.signature);
    across.enter(data);
    if (across.speaks() && tight) {
        across.collect();
        across.disseminate();
        if (!across.is_clean()) {
            across.announce();
            return false;
        }
    }
    return true;
}

void bcast_small_far(spanning_call &call, small_data &data) {
    std::size_t const num = call.num_nodes();
    std::size_t const base = call.layout().node(call.root());
    std::size_t const number = (call.own_node() + num - base) % num;
    std::size_t bit = std::bit_ceil(num);
    if (call.is_root()) {
        std::memcpy(data.bytes(), call.dst(), call.block_bytes());
    } else {
        bit = number & (~number + 1); // the parent has all bits but the lowest one
        data.hear((number - bit + base) % num, step_small);
    }
    for (bit /= 2; bit > 0; bit /= 2) {
        if (number + bit < num) {
            data.tell((number + bit + base) % num, step_small);
        }
    }
}

status small_bcast(spanning_call &call, bool tight) {
    group::bridge &across = call.across;
    if (!begin_small(call, tight, {})) {
        return across.outcome();
    }
    small_data data(call);
    const std::byte *result = data.bytes();
    // What the stages do not hold goes its own way on the node once all agree.
    bool const fits = call.block_bytes() <= most_small_bytes;
    if (across.speaks()) {
        if (!tight && fits && call.block_bytes() > sync::rendezvous::wide_bytes) {
            across.make_room(call.block_bytes());
        } else if (!tight && !fits) {
            across.collect();
        }
        bcast_small_far(call, data);
        data.settle();
        across.announce(fits ? data.span() : std::span<const std::byte>{});
    } else {
        across.follow();
        result = fits ? across.announced(call.block_bytes()) : nullptr;
    }
    DIOMP_TRY(across.outcome());
    if (!call.is_root() && result != nullptr) {
        std::memcpy(call.dst(), result, call.block_bytes());
    }
    if (fits || call.num_here() == 1) {
        return {};
    }
    return call.run_near(operation::bcast, call.dst(), nullptr, call.block_bytes(),
                         call.speaker_place());
}

// A binomial tree in which a node's number has the lower nodes' results to its left. Its root is
// the call's if the operator commutes, so that the order may be turned; else node 0, which passes
// the result on.
void reduce_small_far(spanning_call &call, small_data &data) {
    std::size_t const num = call.num_nodes();
    std::size_t const root_node = call.layout().node(call.root());
    std::size_t const base = call.reduce.commutative ? root_node : 0;
    std::size_t const number = (call.own_node() + num - base) % num;
    for (std::size_t bit = 1; bit < num; bit *= 2) {
        if ((number & bit) != 0) {
            data.tell((number - bit + base) % num, step_small);
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
        data.tell(root_node, step_small + 1);
    } else if (call.own_node() == root_node) {
        data.hear(base, step_small + 1);
    }
}

status small_reduce(spanning_call &call, bool tight) {
    group::bridge &across = call.across;
    if (!begin_small(call, tight, brings(call))) {
        return across.outcome();
    }
    small_data data(call);
    if (across.speaks()) {
        if (!tight) {
            across.collect();
        }
        if (across.is_clean()) {
            data.reduce_near();
        }
        reduce_small_far(call, data);
        data.settle();
        across.announce();
    } else if (tight) {
        across.follow();
    }
    DIOMP_TRY(across.outcome());
    if (call.is_root()) {
        std::memcpy(call.dst(), data.bytes(), call.block_bytes());
    }
    return {};
}

/// The data may travel in letters of the agreement.
bool may_be_told(const spanning_call &call) {
    bool const long_elements = call.asked.type == OMPX_LONG_DOUBLE;
    return call.reduce.user == nullptr && !long_elements && call.asked.amount > 0 &&
           call.block_bytes() <= group::bridge::most_told_bytes;
}

/// Operands of a node that may be told fit into the stages, or are alone there. Finds out whether,
/// at the first larger allreduce.
result<bool> has_stages(spanning_call &call) {
    if (call.num_members == call.num_nodes()) {
        return true;
    }
    if (!call.across.has_wide_stages()) {
        DIOMP_TRY(call.across.widen_stages(call.signature, large_stage_bytes,
                                           call.chosen.stage_room_bytes));
    }
    return *call.across.has_wide_stages();
}

/// The same on all members: it depends on the signature, the layout and earlier calls.
result<bool> is_small(spanning_call &call) {
    if (!may_be_told(call) || call.block_bytes() <= most_small_bytes) {
        return may_be_told(call);
    }
    return call.asked.what == operation::allreduce ? has_stages(call)
                                                   : call.asked.what == operation::bcast;
}

status run_large(spanning_call &call, bool tight) {
    call.across.begin(call.signature);
    if (call.asked.amount > 0 && call.asked.what == operation::bcast) {
        return spanning_bcast(call, tight);
    }
    if (call.asked.amount > 0 && call.asked.what == operation::allreduce) {
        return spanning_allreduce(call);
    }
    DIOMP_TRY(call.across.meet_begun());
    if (call.asked.amount == 0) {
        return {};
    }
    switch (call.asked.what) {
    case operation::reduce:
        return spanning_reduce(call);
    case operation::reduce_scatter:
        return spanning_reduce_scatter(call);
    case operation::gather:
        return spanning_gather(call);
    case operation::scatter:
        return spanning_scatter(call);
    case operation::allgather:
        return spanning_allgather(call);
    default:
        return spanning_alltoall(call);
    }
}

status run_by_size(spanning_call &call) {
    bool const tight = call.chosen.check_all_members ||
                       (call.across.num_calls() + 1) % calls_between_meetings == 0;
    auto small = is_small(call);
    DIOMP_TRY(small);
    if (small.value()) {
        switch (call.asked.what) {
        case operation::bcast:
            return small_bcast(call, tight);
        case operation::reduce:
            return small_reduce(call, tight);
        case operation::allreduce:
            return small_allreduce(call);
        default:
            break;
        }
    }
    return run_large(call, tight);
}

} // namespace

status run_spanning(spanning_call &call) {
    DIOMP_TRY(run_by_size(call));
    return call.across.found_late();
}

int spanning_call::speaker_place() const {
    const auto &here = layout().here;
    auto const speaker = static_cast<std::uint32_t>(across.speaker_of(own_node()));
    return static_cast<int>(std::ranges::lower_bound(here, speaker) - here.begin());
}

status spanning_call::run_near(operation what, void *to, const void *from, std::size_t amount,
                               int root_place) {
    request near = asked;
    near.what = what;
    near.dst = to;
    near.src = from;
    near.amount = amount;
    near.root = root_place;
    // A turn of the scheduler is nothing beside the network: few steps.
    options few_steps = chosen;
    few_steps.oversubscribed = true;
    execution inner{across.here(), near, few_steps, signature_of(near), {}, 1};
    if (is_reduction(what)) {
        inner.reduce = reduce;
        inner.unit_bytes = unit_bytes;
    }
    return run_here(inner);
}

} // namespace diomp::collective
