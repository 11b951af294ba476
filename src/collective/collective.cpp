// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/collective.h"

#include "collective/check.h"
#include "collective/execution.h"
#include "collective/members.h"
#include "collective/select.h"
#include "collective/spanning.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace diomp::collective {
namespace {

using sync::operation;

/// The caller is the only member.
void run_alone(const execution &call) {
    if (call.asked.what != operation::barrier && call.asked.what != operation::bcast) {
        call.deliver(call.dst(), call.src(), call.block_bytes());
    }
}

call_shape shape_of(const execution &call) {
    call_shape shape;
    shape.what = call.asked.what;
    shape.num_members = call.size();
    shape.block_bytes = call.block_bytes();
    shape.user_operator = call.reduce.user != nullptr;
    shape.needs_alignment = call.asked.type == OMPX_LONG_DOUBLE && is_reduction(call.asked.what);
    shape.oversubscribed = call.chosen.oversubscribed;
    return shape;
}

error no_stage(const execution &call) {
    return {OMPX_ERR_NOMEM,
            fmt::format("no space for a stage that holds an element of {} bytes per member",
                        call.unit_bytes),
            "free groups that are not needed any more"};
}

// Elements so large that no stage holds one for every member: one reduction per member. In order,
// since in place the result of all but member 0 overwrites block 0.
status reduce_to_each(execution &call) {
    for (std::size_t member = 0; member < call.size(); ++member) {
        request part = call.asked;
        part.what = operation::reduce;
        part.root = static_cast<int>(member);
        part.src = call.src() + member * call.block_bytes();
        execution inner{call.members,   part,        call.chosen,
                        call.signature, call.reduce, call.unit_bytes};
        DIOMP_TRY(run_staged_exchange(inner, 1));
    }
    return {};
}

status run_in_chunks(execution &call, algorithm how, std::size_t chunk) {
    switch (how) {
    case algorithm::move:
        return run_staged_move(call, chunk);
    case algorithm::split:
        return run_staged_split(call, chunk);
    default:
        return run_staged_exchange(call, chunk);
    }
}

// Lines that one core has written and another reads travel quickly between some pairs of cores, and
// several times slower than memory between others. Which way is better shows only in use; members
// choose for their own stage, and nobody else has to know.
status run_learning(execution &call, algorithm how, std::size_t chunk) {
    call.stage_ways = call.members.stage_ways(call.block_bytes());
    status outcome = run_in_chunks(call, how, chunk);
    if (outcome && call.has_staged && call.stage_ways != nullptr) {
        std::chrono::duration<double> taken{};
        if (call.stage_ways->is_trying()) {
            taken = std::chrono::steady_clock::now() - call.staged_since;
        }
        call.stage_ways->tell(taken.count() / static_cast<double>(call.block_bytes()));
    }
    return outcome;
}

status run_staged(execution &call, plan chosen) {
    if (chosen.grow_stages && call.members.may_grow()) {
        DIOMP_TRY(call.members.grow_stages(call.signature,
                                           std::max(large_stage_bytes, 2 * call.unit_bytes + 512),
                                           call.chosen.stage_room_bytes));
    }
    call_shape const shape = shape_of(call);
    std::size_t const stage_bytes = call.members.stage_bytes();
    std::size_t const wanted_bytes = std::min(stage_bytes, chosen.chunk_bytes);
    std::size_t elements =
        stage_elements(chosen.how, shape, wanted_bytes, stage_bytes, call.unit_bytes);
    if (elements == 0 && chosen.how == algorithm::split) {
        chosen.how = algorithm::exchange;
        elements = stage_elements(chosen.how, shape, wanted_bytes, stage_bytes, call.unit_bytes);
    }
    if (elements == 0) {
        if (call.asked.what == operation::reduce_scatter && call.unit_bytes <= stage_bytes) {
            return reduce_to_each(call);
        }
        return no_stage(call);
    }
    elements = std::min(elements, call.asked.amount);
    call.stage_bytes =
        std::min(stage_bytes, staged_bytes(chosen.how, shape, elements, call.unit_bytes));
    return run_learning(call, chosen.how, elements);
}

// A small call takes as long as its instructions, so most calls skip what only few need. `asked` is
// a call of ranks on equal blocks: on one node, with arguments that are right at first sight?
bool is_common(const group::group &members, const request &asked) {
    constexpr std::size_t surely_no_overflow = std::size_t{1} << 20;
    return !members.spans_nodes() && asked.amount < surely_no_overflow && asked.dst != nullptr &&
           (asked.src != nullptr || asked.what == operation::bcast) &&
           (!has_root(asked.what) || static_cast<std::size_t>(asked.root) < members.size()) &&
           asked.op != OMPX_AVG;
}

/// One call by each rank, as if it were of ranks.
bool is_of_ranks(const roles &who, const request &asked) {
    return who.one_each() && asked.what != operation::barrier && !has_block_lists(asked.what) &&
           !is_scan(asked.what);
}

} // namespace

status run_here(execution &call) {
    if (call.size() == 1) {
        run_alone(call);
        return {};
    }
    plan const chosen = select(shape_of(call));
    if (chosen.how == algorithm::nothing) {
        return call.members.meet(call.signature);
    }
    if (chosen.how == algorithm::tiny) {
        return run_tiny(call);
    }
    DIOMP_TRY(call.members.settle());
    call.try_direct = chosen.try_direct;
    return run_staged(call, chosen);
}

collectives::collectives(const options &chosen) : options_(chosen) {
    if (options_.stream_threshold_bytes == 0) {
        options_.stream_threshold_bytes = rma::default_stream_threshold();
    }
}

status run_ranks(group::group &members, const request &asked, const options &chosen,
                 sync::call_signature signature, const reducer &reduce, std::size_t unit_bytes) {
    if (members.across() != nullptr) {
        spanning_call call{members.size(),
                           members.self().index(),
                           *members.across(),
                           asked,
                           chosen,
                           signature,
                           reduce,
                           unit_bytes};
        return run_spanning(call);
    }
    execution call{members.here(), asked, chosen, signature, reduce, unit_bytes};
    return run_here(call);
}

status collectives::run_common(group::group &members, const request &asked) {
    execution call{members.here(), asked, options_, signature_of(asked), {}};
    if (is_reduction(asked.what)) {
        DIOMP_TRY(operators_.resolve(asked.type, asked.op, call.reduce));
        call.unit_bytes = call.reduce.element_bytes;
    }
    return run_here(call);
}

status collectives::run(group::group &members, const request &asked) {
    auto const turn = members.enter();
    // Without a copy of the buffers that were stored one by one, for the same reason.
    if (is_of_ranks(roles(members), asked) && is_common(members, asked)) [[likely]] {
        return run_common(members, asked);
    }
    endpoint_buffers const own{asked.dst, asked.src, nullptr};
    return run_in_turn(members, asked, {&own, 1});
}

status collectives::run(group::group &members, const request &asked,
                        std::span<const endpoint_buffers> own) {
    auto const turn = members.enter();
    return run_in_turn(members, asked, own);
}

status collectives::run_among_ranks(group::group &members, const request &asked) {
    return run_ranks(members, asked, options_, signature_of(asked), {}, 1);
}

status collectives::compare(group::group &members, const request &asked) {
    return members.meet(signature_of(roles(members), asked));
}

result<std::optional<group::objection>>
collectives::agree(group::group &members, const request &asked,
                   std::optional<std::uint64_t> own_objection) {
    return members.agree(signature_of(roles(members), asked), own_objection);
}

status collectives::meet(group::group &members, const request &asked,
                         const sync::meeting_payload &payload, std::span<const std::byte> staged) {
    group::local_group &here = members.here();
    DIOMP_TRY(here.settle());
    if (!staged.empty()) {
        std::memcpy(here.next_stage(), staged.data(), staged.size());
    }
    return here.meet(signature_of(roles(members), asked), payload);
}

result<reducer> collectives::resolve(const request &asked) const {
    if (!is_reduction(asked.what)) {
        reducer none;
        none.element_bytes = 1;
        return none;
    }
    return operators_.resolve(asked.type, asked.op);
}

status collectives::check(const group::group &members, const request &asked,
                          std::span<const endpoint_buffers> own, std::size_t first) const {
    auto reduce = resolve(asked);
    DIOMP_TRY(reduce);
    return collective::check(roles(members), asked, own, reduce.value(), first);
}

status collectives::run_in_turn(group::group &members, const request &asked,
                                std::span<const endpoint_buffers> own, bool is_checked) {
    if (asked.what == operation::barrier) {
        return members.meet({.what = operation::barrier});
    }
    roles const who(members);
    bool const as_ranks = is_of_ranks(who, asked);
    bool const is_moved =
        as_ranks && (own.front().dst != asked.dst || own.front().src != asked.src);
    request moved;
    if (is_moved) {
        moved = asked;
        moved.dst = own.front().dst;
        moved.src = own.front().src;
    }
    request const &seen = is_moved ? moved : asked;
    if (as_ranks && is_common(members, seen)) [[likely]] {
        return run_common(members, seen);
    }
    auto resolved = resolve(asked);
    DIOMP_TRY(resolved);
    const reducer &reduce = resolved.value();
    if (!is_checked) {
        DIOMP_TRY(collective::check(who, asked, own, reduce));
    }
    if (as_ranks) {
        DIOMP_TRY(
            run_ranks(members, seen, options_, signature_of(asked), reduce, reduce.element_bytes));
    } else {
        member_call const call{
            members, asked, own, options_, signature_of(who, asked), reduce, reduce.element_bytes,
            who};
        DIOMP_TRY(run_members(call));
    }
    for (std::size_t i = 0; reduce.average != nullptr && i < own.size(); ++i) {
        if (asked.what != operation::reduce || who.own(i) == static_cast<std::size_t>(asked.root)) {
            reduce.average(own[i].dst, asked.amount, who.size());
        }
    }
    return {};
}

result<ompx_event *> collectives::start(group::group &members, const request &asked) {
    return start(members, asked, {{asked.dst, asked.src, nullptr}});
}

result<ompx_event *> collectives::start(group::group &members, const request &asked,
                                        std::vector<endpoint_buffers> own) {
    if (asked.what != operation::barrier) {
        DIOMP_TRY(check(members, asked, own));
    }
    auto event = std::make_unique<ompx_event>();
    members.calls().submit([this, &members, asked, own = std::move(own), event = event.get()] {
        event->complete(run_in_turn(members, asked, own, true));
        members.engine().wake_waiters();
    });
    return event.release();
}

} // namespace diomp::collective
