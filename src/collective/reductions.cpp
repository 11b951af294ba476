// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions through the stages. Operands are combined in rank order; the caller's own operand is
// read where it is.
#include "collective/chunks.h"

#include <algorithm>

namespace diomp::collective {
namespace {

using sync::operation;

// Where the result of a piece may go. If the program's own operand is overwritten before it is read
// (in place, and it is not the first operand), the piece goes through `aside`.
class piecewise_reduction {
public:
    explicit piecewise_reduction(const execution &call)
        : call_(call), aside_(call.unit_bytes), elements_(aside_.elements()) {}

    /// Reduces `count` elements; operand(member, first) points to element `first`. Each piece is
    /// given to store(first, bytes, nbytes).
    template <typename Operand, typename Store>
    void run_aside(std::size_t count, Operand &&operand, Store &&store) {
        std::byte *const out = aside_.data();
        for (std::size_t first = 0; first < count; first += elements_) {
            std::size_t const piece = std::min(elements_, count - first);
            reduce_in_order(call_.reduce, out, call_.size(), piece,
                            [&](std::size_t member) { return operand(member, first); });
            store(first * call_.unit_bytes, out, piece * call_.unit_bytes);
        }
    }

    /// The same straight into `to`, which may be the caller's own operand.
    template <typename Operand>
    void run(std::byte *to, std::size_t count, Operand &&operand) {
        bool const overwrites_operand =
            operand(call_.self(), std::size_t{0}) == to && call_.self() > 0;
        if (overwrites_operand) {
            run_aside(count, operand, [to](std::size_t at, const std::byte *from, std::size_t n) {
                std::memcpy(to + at, from, n);
            });
            return;
        }
        for (std::size_t first = 0; first < count; first += elements_) {
            std::size_t const piece = std::min(elements_, count - first);
            reduce_in_order(call_.reduce, to + first * call_.unit_bytes, call_.size(), piece,
                            [&](std::size_t member) { return operand(member, first); });
        }
    }

private:
    const execution &call_;
    piece_buffer aside_;
    std::size_t elements_;
};

// Each member stages its operand; those who get the result read all stages.
status exchange(execution &call, const chunking &chunks) {
    bool const to_all = call.asked.what == operation::allreduce;
    bool const collects = to_all || call.is_root();
    std::size_t const unit = call.unit_bytes;
    piecewise_reduction reduction(call);
    return run_one_phase(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            range const piece = chunks[chunk];
            if (to_all || !collects) {
                call.stage(call.next_stage(), call.src() + piece.begin * unit, piece.count * unit);
            }
        },
        [&](std::size_t chunk) {
            if (!collects) {
                return;
            }
            range const piece = chunks[chunk];
            reduction.run(call.dst() + piece.begin * unit, piece.count,
                          [&](std::size_t member, std::size_t first) -> const std::byte * {
                              return member == call.self()
                                         ? call.src() + (piece.begin + first) * unit
                                         : call.stage_of(member) + first * unit;
                          });
        });
}

// Each member stages the pieces of all other members' blocks and reduces those of its own.
status reduce_scatter(execution &call, const chunking &chunks) {
    std::size_t const unit = call.unit_bytes;
    std::size_t const block = call.block_bytes();
    std::size_t const place = chunks.chunk * unit;
    piecewise_reduction reduction(call);
    return run_one_phase(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            range const piece = chunks[chunk];
            std::byte *const stage = call.next_stage();
            for (std::size_t to = 0; to < call.size(); ++to) {
                if (to != call.self()) {
                    call.stage(stage + call.place_in_stage(call.self(), to) * place,
                               call.src() + to * block + piece.begin * unit, piece.count * unit);
                }
            }
        },
        [&](std::size_t chunk) {
            range const piece = chunks[chunk];
            reduction.run(call.dst() + piece.begin * unit, piece.count,
                          [&](std::size_t member, std::size_t first) -> const std::byte * {
                              return member == call.self()
                                         ? call.src() + call.self() * block +
                                               (piece.begin + first) * unit
                                         : call.stage_of(member) +
                                               call.place_in_stage(member, call.self()) * place +
                                               first * unit;
                          });
        });
}

} // namespace

status run_staged_exchange(execution &call, std::size_t chunk_units) {
    chunking const chunks{call.asked.amount, chunk_units};
    return call.asked.what == operation::reduce_scatter ? reduce_scatter(call, chunks)
                                                        : exchange(call, chunks);
}

// Each chunk is cut into one part per member. A member stages the parts of the others, reduces its
// own part into the result area behind the operands, and copies the other members' results out. The
// stage is [chunk of operands][own part of the result].
status run_staged_split(execution &call, std::size_t chunk_units) {
    chunking const chunks{call.asked.amount, chunk_units};
    bool const collects = call.asked.what == operation::allreduce || call.is_root();
    std::size_t const unit = call.unit_bytes;
    std::size_t const grain = std::max<std::size_t>(1, cache_line_bytes / unit);
    std::size_t const result_place =
        (chunk_units * unit + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
    auto const part_of = [&](std::size_t chunk, std::size_t member) {
        return share_of(chunks[chunk].count, call.size(), member, grain);
    };
    return run_two_phases(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            range const piece = chunks[chunk];
            range const own = part_of(chunk, call.self());
            const std::byte *const from = call.src() + piece.begin * unit;
            std::byte *const stage = call.next_stage();
            std::size_t const behind = own.begin + own.count;
            call.stage(stage, from, own.begin * unit);
            call.stage(stage + behind * unit, from + behind * unit, (piece.count - behind) * unit);
        },
        [&](std::size_t chunk) {
            range const own = part_of(chunk, call.self());
            std::size_t const begin = chunks[chunk].begin + own.begin;
            std::byte *const result = call.next_stage() + result_place;
            // Not straight into dst: in place, dst is an operand.
            for (std::size_t first = 0; first < own.count;) {
                std::size_t const piece =
                    std::min(own.count - first, piece_buffer::elements_of(unit));
                std::byte *const out = result + first * unit;
                reduce_in_order(call.reduce, out, call.size(), piece,
                                [&](std::size_t member) -> const std::byte * {
                                    return member == call.self()
                                               ? call.src() + (begin + first) * unit
                                               : call.stage_of(member) + (own.begin + first) * unit;
                                });
                if (collects) {
                    call.deliver(call.dst() + (begin + first) * unit, out, piece * unit);
                }
                first += piece;
            }
        },
        [&](std::size_t chunk) {
            for (std::size_t step = 1; collects && step < call.size(); ++step) {
                std::size_t const from = (call.self() + step) % call.size();
                range const part = part_of(chunk, from);
                call.deliver(call.dst() + (chunks[chunk].begin + part.begin) * unit,
                             call.stage_of(from) + result_place, part.count * unit);
            }
        });
}

} // namespace diomp::collective
