// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two pipelines of all staged algorithms. Between two rounds of the node barrier each member
// does one step of every phase for a different chunk, so the phases overlap although each step ends
// with a barrier:
//
//   one phase    produce 0 | barrier | produce 1, consume 0 | barrier | produce 2, consume 1 | ...
//   two phases   produce 0 | barrier | produce 1, reduce 0  | barrier |
//                produce 2, reduce 1, consume 0 | ...
//
// produce fills the stage buffer of the coming round; reduce reads the stage buffers of the last
// round and writes its result into the stage buffer of the coming one (after the next chunk);
// consume reads the stage buffers of the last round.
//
// In large calls the first round also publishes the addresses of the buffers. A member whose own
// buffers rule out zero-copy, and that does not offer its private memory, stages chunk 0 before
// that round. If all members did so, the pipeline continues. If all buffers allow zero-copy, that
// algorithm runs; if all members offer their memory, the one by cross-memory attach; else chunk 0
// is staged for one more round.
#pragma once

#include "coll/internal/attached.h"
#include "coll/internal/execution.h"

namespace diomp::coll {

/// The first round of a call. Returns true if the zero-copy algorithm has completed the call.
template <typename Produce>
result<bool> run_first_round(execution &call, Produce &&produce) {
    if (!call.try_zero_copy) {
        produce(std::size_t{0});
        DIOMP_TRY(call.members.barrier().arrive_and_wait(call.signature));
        return false;
    }
    bool const may_stay =
        allows_zero_copy(call.args, view_of(call.chosen, call.src(), call.dst()), call.self());
    attach_offer const own = make_attach_offer(call);
    if (!may_stay && !own.has(attach_offer::is_ready)) {
        produce(std::size_t{0});
    }
    published_buffers buffers;
    DIOMP_TRY(exchange_buffers(call, own, buffers));
    std::size_t const num_zero_copy = count_zero_copy(call, buffers.in_arena);
    if (num_zero_copy == call.size()) {
        call.attach.begin.reset();
        DIOMP_TRY(run_zero_copy(call, buffers.in_arena));
        return true;
    }
    if (agree_on_attach(call, buffers.offers)) {
        DIOMP_TRY(run_attached(call, buffers.all));
        return true;
    }
    bool const any_offered = std::ranges::any_of(
        buffers.offers, [](const attach_offer &each) { return each.has(attach_offer::is_ready); });
    if (num_zero_copy > 0 || any_offered) {
        produce(std::size_t{0});
        DIOMP_TRY(call.members.barrier().arrive_and_wait(call.signature));
    }
    return false;
}

template <typename Produce, typename Consume>
status run_one_phase(execution &call, std::size_t num_chunks, Produce &&produce,
                     Consume &&consume) {
    result<bool> done = run_first_round(call, produce);
    if (!done || done.value()) {
        return done ? status{} : done.take_failure();
    }
    for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) {
        if (chunk > 0) {
            DIOMP_TRY(call.members.barrier().arrive_and_wait(call.signature));
        }
        if (chunk + 1 < num_chunks) {
            produce(chunk + 1);
        }
        consume(chunk);
    }
    return {};
}

template <typename Produce, typename Reduce, typename Consume>
status run_two_phases(execution &call, std::size_t num_chunks, Produce &&produce, Reduce &&reduce,
                      Consume &&consume) {
    result<bool> done = run_first_round(call, produce);
    if (!done || done.value()) {
        return done ? status{} : done.take_failure();
    }
    for (std::size_t chunk = 0; chunk <= num_chunks; ++chunk) {
        if (chunk > 0) {
            DIOMP_TRY(call.members.barrier().arrive_and_wait(call.signature));
        }
        if (chunk + 1 < num_chunks) {
            produce(chunk + 1);
        }
        if (chunk < num_chunks) {
            reduce(chunk);
        }
        if (chunk > 0) {
            consume(chunk - 1);
        }
    }
    return {};
}

} // namespace diomp::coll
