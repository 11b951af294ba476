// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/collective.h"

#include "base/assert.h"
#include "coll/internal/attached.h"
#include "coll/internal/check.h"
#include "coll/internal/execution.h"
#include "coll/internal/members.h"
#include "coll/internal/select.h"
#include "coll/internal/two_level.h"
#include "group/protocol_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace diomp::coll {
namespace {

using sync::operation;

/// Runs the call if the caller is the only member.
void run_alone(const execution &call) {
    if (call.args.what != operation::barrier && call.args.what != operation::bcast) {
        call.copy_to_user(call.dst(), call.src(), call.block_bytes());
    }
}

call_shape shape_of(const execution &call) {
    call_shape shape;
    shape.what = call.args.what;
    shape.num_members = call.size();
    shape.block_bytes = call.block_bytes();
    shape.user_operator = call.reduce.user != nullptr;
    shape.needs_alignment = call.args.type == OMPX_LONG_DOUBLE && is_reduction(call.args.what);
    shape.oversubscribed = call.chosen.oversubscribed;
    return shape;
}

error no_space_for_stage_buffer(const execution &call) {
    return {OMPX_ERR_NOMEM,
            fmt::format("no space for a stage buffer that holds an element of {} bytes per member",
                        call.unit_bytes),
            "free groups that are not needed any more"};
}

// For elements so large that no stage buffer holds one for every member: one reduction per member.
// The order matters, since in place the result of each member but 0 overwrites block 0.
status reduce_to_each(execution &call) {
    for (std::size_t member = 0; member < call.size(); ++member) {
        request inner_args = call.args;
        inner_args.what = operation::reduce;
        inner_args.root = static_cast<int>(member);
        inner_args.src = call.src() + member * call.block_bytes();
        execution inner{call.members,   inner_args,  call.chosen,
                        call.signature, call.reduce, call.unit_bytes};
        DIOMP_TRY(run_flat(inner, 1));
    }
    return {};
}

status run_in_chunks(execution &call, algorithm method, std::size_t chunk) {
    switch (method) {
    case algorithm::staged:
        return run_staged(call, chunk);
    case algorithm::reduce_scatter_allgather:
        return run_reduce_scatter_allgather(call, chunk);
    default:
        return run_flat(call, chunk);
    }
}

// Cache lines written by one core and read by another are fast between some pairs of cores, and
// several times slower than memory between others. Only measurements show which kind of store is
// better; each member chooses for its own stage buffer.
status run_autotuned(execution &call, algorithm method, std::size_t chunk) {
    call.stage_autotuner = call.members.stage_buffers().autotuner_of(call.block_bytes());
    status outcome = run_in_chunks(call, method, chunk);
    note_attach_time(call);
    if (outcome && call.staged.has_begun && call.stage_autotuner != nullptr) {
        std::chrono::duration<double> taken{};
        if (call.stage_autotuner->is_measuring()) {
            taken = std::chrono::steady_clock::now() - call.staged.since;
        }
        call.stage_autotuner->report(taken.count() / static_cast<double>(call.block_bytes()));
    }
    return outcome;
}

status run_with_stage_buffers(execution &call, plan chosen) {
    if (chosen.grow_stage_buffers && call.members.stage_buffers().may_grow()) {
        DIOMP_TRY(call.members.grow_stage_buffers(
            call.signature, std::max(large_stage_bytes, 2 * call.unit_bytes + 512),
            call.chosen.stage_buffer_half_bytes));
    }
    call_shape const shape = shape_of(call);
    std::size_t const stage_buffer_bytes = call.members.stage_buffers().buffer_bytes();
    std::size_t const wanted_bytes = std::min(stage_buffer_bytes, chosen.chunk_bytes);
    std::size_t elements =
        stage_elements(chosen.method, shape, wanted_bytes, stage_buffer_bytes, call.unit_bytes);
    if (elements == 0 && chosen.method == algorithm::reduce_scatter_allgather) {
        chosen.method = algorithm::flat;
        elements =
            stage_elements(chosen.method, shape, wanted_bytes, stage_buffer_bytes, call.unit_bytes);
    }
    if (elements == 0) {
        if (call.args.what == operation::reduce_scatter && call.unit_bytes <= stage_buffer_bytes) {
            return reduce_to_each(call);
        }
        return no_space_for_stage_buffer(call);
    }
    elements = std::min(elements, call.args.amount);
    call.stage_buffer_bytes =
        std::min(stage_buffer_bytes, staged_bytes(chosen.method, shape, elements, call.unit_bytes));
    group::log_protocol("    {} of {} elements in chunks of {}, {} bytes of stage buffer",
                        name_of(chosen.method), call.args.amount, elements,
                        call.stage_buffer_bytes);
    return run_autotuned(call, chosen.method, elements);
}

// Small calls are bound by instructions, so the common case skips the checks that only few calls
// need. `args`: a call of ranks on equal blocks. True if it is on one node and its arguments are
// obviously valid.
bool is_common_case(const group::group &members, const request &args) {
    constexpr std::size_t surely_no_overflow = std::size_t{1} << 20;
    return !members.spans_nodes() && args.amount < surely_no_overflow && args.dst != nullptr &&
           (args.src != nullptr || args.what == operation::bcast) &&
           (!has_root(args.what) || static_cast<std::size_t>(args.root) < members.size()) &&
           args.op != OMPX_AVG;
}

/// Whether each rank makes one call, as in a group of ranks.
bool is_rank_call(const member_map &map, const request &args) {
    return map.one_each() && args.what != operation::barrier && !has_block_lists(args.what) &&
           !is_scan(args.what);
}

status run_selected(execution &call) {
    if (call.size() == 1) {
        run_alone(call);
        return {};
    }
    plan const chosen = select(shape_of(call), call.chosen.source);
    group::log_protocol("    algorithm {}{}", name_of(chosen.method),
                        chosen.try_zero_copy ? ", or zero copy if all buffers allow it" : "");
    if (chosen.method == algorithm::barrier_only) {
        return call.members.barrier().arrive_and_wait(call.signature);
    }
    if (chosen.method == algorithm::inline_data) {
        return run_inline_data(call);
    }
    sync::call_scope const rounds(call.members.barrier());
    DIOMP_TRY(call.members.begin_call());
    call.try_zero_copy = chosen.try_zero_copy;
    return run_with_stage_buffers(call, chosen);
}

/// run_selected(), with what it does in the log.
status run_logged(execution &call) {
    auto const &barrier = call.members.barrier();
    std::uint64_t const before = barrier.epoch();
    group::log_protocol("{} on one node, block of {} bytes: member {} of {}, from round {} on",
                        sync::describe(call.signature), call.block_bytes(), call.self(),
                        call.size(), before + 1);
    status outcome = run_selected(call);
    group::log_protocol("    {} after {} rounds", outcome ? "done" : outcome.failure().message(),
                        barrier.epoch() - before);
    return outcome;
}

} // namespace

status run_intra_node_call(execution &call) {
    if (group::logs_protocol()) [[unlikely]] {
        return run_logged(call);
    }
    return run_selected(call);
}

collectives::collectives(const options &chosen) : options_(chosen) {
    if (options_.stream_threshold_bytes == 0) {
        options_.stream_threshold_bytes = rma::default_stream_threshold();
    }
}

status run_ranks(group::group &members, const request &args, const options &chosen,
                 sync::call_signature signature, const reducer &reduce, std::size_t unit_bytes) {
    if (members.internode() != nullptr) {
        two_level_call call{members.size(),
                            members.self().index(),
                            *members.internode(),
                            args,
                            chosen,
                            signature,
                            reduce,
                            unit_bytes};
        return members.internode()->make_call([&] { return run_two_level(call); });
    }
    execution call{members.local_members(), args, chosen, signature, reduce, unit_bytes};
    return run_intra_node_call(call);
}

status collectives::run_common_case(group::group &members, const request &args) {
    execution call{members.local_members(), args, options_, signature_of(args), {}};
    if (is_reduction(args.what)) {
        DIOMP_TRY(operators_.resolve(args.type, args.op, call.reduce));
        call.unit_bytes = call.reduce.element_bytes;
    }
    DIOMP_TRY(run_intra_node_call(call));
    return members.local_members().barrier().take_late_mismatch();
}

status collectives::run(group::group &members, const request &args) {
    auto const call_lock = members.lock_calls();
    // The common case avoids a copy of the buffers, because small calls are bound by instructions.
    if (is_rank_call(member_map(members), args) && is_common_case(members, args)) [[likely]] {
        return run_common_case(members, args);
    }
    endpoint_buffers const own{args.dst, args.src, nullptr};
    return run_locked(members, args, {&own, 1});
}

status collectives::run(group::group &members, const request &args,
                        std::span<const endpoint_buffers> own) {
    auto const call_lock = members.lock_calls();
    return run_locked(members, args, own);
}

status collectives::run_among_ranks(group::group &members, const request &args) {
    DIOMP_ASSERT(!has_block_lists(args.what), "the blocks have one size");
    return run_ranks(members, args, options_, signature_of(args), {}, 1);
}

status collectives::compare(group::group &members, const request &args) {
    return members.arrive_and_wait(signature_of(member_map(members), args));
}

result<std::optional<group::veto>> collectives::agree(group::group &members, const request &args,
                                                      std::optional<std::uint64_t> own_veto) {
    return members.agree(signature_of(member_map(members), args), own_veto);
}

status collectives::arrive_and_wait(group::group &members, const request &args,
                                    const sync::round_payload &payload,
                                    std::span<const std::byte> staged) {
    group::local_group &local_members = members.local_members();
    DIOMP_TRY(local_members.begin_call());
    if (!staged.empty()) {
        std::memcpy(local_members.next_stage_buffer(), staged.data(), staged.size());
    }
    return local_members.barrier().arrive_and_wait(signature_of(member_map(members), args),
                                                   payload);
}

result<reducer> collectives::resolve(const request &args) const {
    if (!is_reduction(args.what)) {
        reducer none;
        none.element_bytes = 1;
        return none;
    }
    return operators_.resolve(args.type, args.op);
}

status collectives::check(const group::group &members, const request &args,
                          std::span<const endpoint_buffers> own, std::size_t first) const {
    auto reduce = resolve(args);
    DIOMP_TRY(reduce);
    return coll::check(member_map(members), args, own, reduce.value(), first);
}

status collectives::run_locked(group::group &members, const request &args,
                               std::span<const endpoint_buffers> own, bool is_checked) {
    if (args.what == operation::barrier) {
        DIOMP_TRY(members.arrive_and_wait({.what = operation::barrier}));
        return take_late_mismatch(members);
    }
    member_map const map(members);
    bool const as_ranks = is_rank_call(map, args);
    sync::call_scope const rounds(members.local_members().barrier(),
                                  as_ranks ? sync::call_rounds::equal : sync::call_rounds::several);
    bool const has_endpoint_buffers =
        as_ranks && (own.front().dst != args.dst || own.front().src != args.src);
    request endpoint_args;
    if (has_endpoint_buffers) {
        endpoint_args = args;
        endpoint_args.dst = own.front().dst;
        endpoint_args.src = own.front().src;
    }
    request const &effective_args = has_endpoint_buffers ? endpoint_args : args;
    if (as_ranks && is_common_case(members, effective_args)) [[likely]] {
        return run_common_case(members, effective_args);
    }
    auto resolved = resolve(args);
    DIOMP_TRY(resolved);
    const reducer &reduce = resolved.value();
    if (!is_checked) {
        DIOMP_TRY(coll::check(map, args, own, reduce));
    }
    if (as_ranks) {
        DIOMP_TRY(run_ranks(members, effective_args, options_, signature_of(args), reduce,
                            reduce.element_bytes));
    } else {
        member_call const call{
            members, args, own, options_, signature_of(map, args), reduce, reduce.element_bytes,
            map};
        group::internode_comm *const between = members.internode();
        DIOMP_TRY(between == nullptr ? run_member_call(call) : between->make_call([&] {
            between->note_several_rounds();
            return run_member_call(call);
        }));
    }
    for (std::size_t i = 0; reduce.average != nullptr && i < own.size(); ++i) {
        if (args.what != operation::reduce || map.own(i) == static_cast<std::size_t>(args.root)) {
            reduce.average(own[i].dst, args.amount, map.size());
        }
    }
    return take_late_mismatch(members);
}

} // namespace diomp::coll
