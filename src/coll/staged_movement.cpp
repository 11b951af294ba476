// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data movement through the stage buffers: a sender writes a chunk into its stage buffer, the
// receivers copy it out after the round.
#include "coll/internal/chunks.h"

namespace diomp::coll {
namespace {

using sync::operation;

// The root's stage buffer holds a chunk of the block.
status bcast(execution &call, const chunking &chunks) {
    return run_one_phase(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            if (call.is_root()) {
                range const chunk_range = chunks[chunk];
                call.copy_to_stage_buffer(call.next_stage_buffer(), call.dst() + chunk_range.begin,
                                          chunk_range.count);
            }
        },
        [&](std::size_t chunk) {
            if (!call.is_root()) {
                range const chunk_range = chunks[chunk];
                call.copy_to_user(call.dst() + chunk_range.begin, call.stage_buffer_of(call.root()),
                                  chunk_range.count);
            }
        });
}

// Each member's stage buffer holds a chunk of its block. A root that gathers does not stage its own
// block.
status gather(execution &call, const chunking &chunks) {
    bool const to_all = call.args.what == operation::allgather;
    bool const receives_result = to_all || call.is_root();
    DIOMP_TRY(run_one_phase(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            if (to_all || !receives_result) {
                range const chunk_range = chunks[chunk];
                call.copy_to_stage_buffer(call.next_stage_buffer(), call.src() + chunk_range.begin,
                                          chunk_range.count);
            }
        },
        [&](std::size_t chunk) {
            range const chunk_range = chunks[chunk];
            // Each member starts with the next one, so that they read different stage buffers.
            for (std::size_t step = 1; receives_result && step < call.size(); ++step) {
                std::size_t const from = (call.self() + step) % call.size();
                call.copy_to_user(call.dst() + from * call.block_bytes() + chunk_range.begin,
                                  call.stage_buffer_of(from), chunk_range.count);
            }
        }));
    // Not before: no buffer is written in a call that turns out to differ between members.
    if (receives_result) {
        call.copy_to_user(call.dst() + call.self() * call.block_bytes(), call.src(),
                          call.block_bytes());
    }
    return {};
}

// The stage buffer holds a chunk of each other member's block.
status scatter(execution &call, const chunking &chunks) {
    bool const from_all = call.args.what == operation::alltoall;
    bool const has_data = from_all || call.is_root();
    std::size_t const block = call.block_bytes();
    DIOMP_TRY(run_one_phase(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            range const chunk_range = chunks[chunk];
            std::byte *const buffer = call.next_stage_buffer();
            for (std::size_t to = 0; has_data && to < call.size(); ++to) {
                if (to != call.self()) {
                    call.copy_to_stage_buffer(
                        buffer + call.stage_block_index(call.self(), to) * chunks.chunk,
                        call.src() + to * block + chunk_range.begin, chunk_range.count);
                }
            }
        },
        [&](std::size_t chunk) {
            range const chunk_range = chunks[chunk];
            auto const own_block = [&](std::size_t from) {
                return call.stage_buffer_of(from) +
                       call.stage_block_index(from, call.self()) * chunks.chunk;
            };
            if (!from_all) {
                if (!call.is_root()) {
                    call.copy_to_user(call.dst() + chunk_range.begin, own_block(call.root()),
                                      chunk_range.count);
                }
                return;
            }
            for (std::size_t step = 1; step < call.size(); ++step) {
                std::size_t const from = (call.self() + step) % call.size();
                call.copy_to_user(call.dst() + from * block + chunk_range.begin, own_block(from),
                                  chunk_range.count);
            }
        }));
    if (has_data) {
        call.copy_to_user(from_all ? call.dst() + call.self() * block : call.dst(),
                          call.src() + call.self() * block, block);
    }
    return {};
}

} // namespace

status run_staged(execution &call, std::size_t chunk_units) {
    chunking const chunks{call.args.amount, chunk_units};
    switch (call.args.what) {
    case operation::bcast:
        return bcast(call, chunks);
    case operation::gather:
    case operation::allgather:
        return gather(call, chunks);
    default:
        return scatter(call, chunks);
    }
}

} // namespace diomp::coll
