// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two pipelines on which all staged algorithms stand. Between two meetings every member does a
// piece of each phase for a different chunk, so the phases overlap although a step is a barrier:
//
//   one phase    produce 0 | meet | produce 1, consume 0 | meet | produce 2, consume 1 | ...
//   two phases   produce 0 | meet | produce 1, reduce 0  | meet | produce 2, reduce 1, consume 0 |
//   ...
//
// produce fills the stage of the coming meeting; reduce reads the stages of the last meeting and
// leaves its result in the stage of the coming one (beside the next chunk); consume reads the
// stages of the last meeting.
//
// In large calls the first meeting also tells where the buffers are. Whoever sees at once that a
// direct algorithm is impossible stages chunk 0 before it, as always. If all did, the pipeline goes
// on; if nobody did, the direct algorithm runs; else chunk 0 is staged for one more meeting.
#pragma once

#include "collective/execution.h"

namespace diomp::collective {

/// The first meeting of a call. true: the direct algorithm has done everything.
template <typename Produce>
result<bool> open(execution &call, Produce &&produce) {
    if (!call.try_direct) {
        produce(std::size_t{0});
        DIOMP_TRY(call.members.meet(call.signature));
        return false;
    }
    bool const stages_now =
        !allows_direct(call.asked, view_of(call.chosen, call.src(), call.dst()), call.self());
    if (stages_now) {
        produce(std::size_t{0});
    }
    std::vector<buffer_view> buffers;
    DIOMP_TRY(exchange_buffers(call, buffers));
    std::size_t const num_direct = count_direct(call, buffers);
    if (num_direct == call.size()) {
        DIOMP_TRY(run_direct(call, buffers));
        return true;
    }
    if (num_direct > 0) {
        produce(std::size_t{0});
        DIOMP_TRY(call.members.meet(call.signature));
    }
    return false;
}

template <typename Produce, typename Consume>
status run_one_phase(execution &call, std::size_t num_chunks, Produce &&produce,
                     Consume &&consume) {
    result<bool> opened = open(call, produce);
    if (!opened || opened.value()) {
        return opened ? status{} : opened.take_failure();
    }
    for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) {
        if (chunk > 0) {
            DIOMP_TRY(call.members.meet(call.signature));
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
    result<bool> opened = open(call, produce);
    if (!opened || opened.value()) {
        return opened ? status{} : opened.take_failure();
    }
    for (std::size_t chunk = 0; chunk <= num_chunks; ++chunk) {
        if (chunk > 0) {
            DIOMP_TRY(call.members.meet(call.signature));
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

} // namespace diomp::collective
