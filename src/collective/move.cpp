// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls that move data without changing it, through the stages: who has data writes a chunk of it
// into the stage, who wants it copies it out after the meeting.
#include "collective/chunks.h"

namespace diomp::collective {
namespace {

using sync::operation;

// The stage holds the same piece of one block.
status bcast(execution &call, const chunking &chunks) {
    return run_one_phase(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            if (call.is_root()) {
                range const piece = chunks[chunk];
                call.stage(call.next_stage(), call.dst() + piece.begin, piece.count);
            }
        },
        [&](std::size_t chunk) {
            if (!call.is_root()) {
                range const piece = chunks[chunk];
                call.deliver(call.dst() + piece.begin, call.stage_of(call.root()), piece.count);
            }
        });
}

// The stage of each member holds a piece of its block. A member that collects keeps its own block
// out of the stage if nobody else wants it.
status gather(execution &call, const chunking &chunks) {
    bool const to_all = call.asked.what == operation::allgather;
    bool const collects = to_all || call.is_root();
    if (collects) {
        call.deliver(call.dst() + call.self() * call.block_bytes(), call.src(), call.block_bytes());
    }
    return run_one_phase(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            if (to_all || !collects) {
                range const piece = chunks[chunk];
                call.stage(call.next_stage(), call.src() + piece.begin, piece.count);
            }
        },
        [&](std::size_t chunk) {
            range const piece = chunks[chunk];
            // Everybody starts with the next member, so that they do not all read the same stage.
            for (std::size_t step = 1; collects && step < call.size(); ++step) {
                std::size_t const from = (call.self() + step) % call.size();
                call.deliver(call.dst() + from * call.block_bytes() + piece.begin,
                             call.stage_of(from), piece.count);
            }
        });
}

// The stage holds a piece of the block of each other member.
status scatter(execution &call, const chunking &chunks) {
    bool const from_all = call.asked.what == operation::alltoall;
    bool const brings = from_all || call.is_root();
    std::size_t const block = call.block_bytes();
    if (brings) {
        call.deliver(from_all ? call.dst() + call.self() * block : call.dst(),
                     call.src() + call.self() * block, block);
    }
    return run_one_phase(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            range const piece = chunks[chunk];
            std::byte *const stage = call.next_stage();
            for (std::size_t to = 0; brings && to < call.size(); ++to) {
                if (to != call.self()) {
                    call.stage(stage + call.place_in_stage(call.self(), to) * chunks.chunk,
                               call.src() + to * block + piece.begin, piece.count);
                }
            }
        },
        [&](std::size_t chunk) {
            range const piece = chunks[chunk];
            auto const own_piece = [&](std::size_t from) {
                return call.stage_of(from) + call.place_in_stage(from, call.self()) * chunks.chunk;
            };
            if (!from_all) {
                if (!call.is_root()) {
                    call.deliver(call.dst() + piece.begin, own_piece(call.root()), piece.count);
                }
                return;
            }
            for (std::size_t step = 1; step < call.size(); ++step) {
                std::size_t const from = (call.self() + step) % call.size();
                call.deliver(call.dst() + from * block + piece.begin, own_piece(from), piece.count);
            }
        });
}

} // namespace

status run_staged_move(execution &call, std::size_t chunk_units) {
    chunking const chunks{call.asked.amount, chunk_units};
    switch (call.asked.what) {
    case operation::bcast:
        return bcast(call, chunks);
    case operation::gather:
    case operation::allgather:
        return gather(call, chunks);
    default:
        return scatter(call, chunks);
    }
}

} // namespace diomp::collective
