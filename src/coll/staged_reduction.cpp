// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions through the stage buffers. Operands are combined in rank order; the caller's own
// operand is read from its buffer.
#include "coll/internal/chunks.h"

#include <algorithm>

namespace diomp::coll {
namespace {

using sync::operation;

// Writes reductions block by block. If a result would overwrite the program's own operand before it
// is read (in place, and not the first operand), the block goes through `scratch`.
class blockwise_reduction {
public:
    explicit blockwise_reduction(const execution &call)
        : call_(call), scratch_(call.unit_bytes), elements_(scratch_.elements()) {}

    /// Reduces `count` elements; operand(member, first) points to element `first`. Each block of
    /// the result is passed to store(first, bytes, nbytes).
    template <typename Operand, typename Store>
    void run_through_scratch(std::size_t count, Operand &&operand, Store &&store) {
        std::byte *const out = scratch_.data();
        for (std::size_t first = 0; first < count; first += elements_) {
            std::size_t const n = std::min(elements_, count - first);
            reduce_in_order(call_.reduce, out, call_.size(), n,
                            [&](std::size_t member) { return operand(member, first); });
            store(first * call_.unit_bytes, out, n * call_.unit_bytes);
        }
    }

    /// Reduces directly into `to`, which may be the caller's own operand.
    template <typename Operand>
    void run(std::byte *to, std::size_t count, Operand &&operand) {
        bool const overwrites_operand =
            operand(call_.self(), std::size_t{0}) == to && call_.self() > 0;
        if (overwrites_operand) {
            run_through_scratch(count, operand,
                                [to](std::size_t at, const std::byte *from, std::size_t n) {
                                    std::memcpy(to + at, from, n);
                                });
            return;
        }
        for (std::size_t first = 0; first < count; first += elements_) {
            std::size_t const n = std::min(elements_, count - first);
            reduce_in_order(call_.reduce, to + first * call_.unit_bytes, call_.size(), n,
                            [&](std::size_t member) { return operand(member, first); });
        }
    }

private:
    const execution &call_;
    cache_block_buffer scratch_;
    std::size_t elements_;
};

// Each member stages its operand; the members that get the result read all stage buffers.
status reduce_flat(execution &call, const chunking &chunks) {
    bool const to_all = call.args.what == operation::allreduce;
    bool const receives_result = to_all || call.is_root();
    std::size_t const unit = call.unit_bytes;
    blockwise_reduction reduction(call);
    return run_one_phase(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            range const chunk_range = chunks[chunk];
            if (to_all || !receives_result) {
                call.copy_to_stage_buffer(call.next_stage_buffer(),
                                          call.src() + chunk_range.begin * unit,
                                          chunk_range.count * unit);
            }
        },
        [&](std::size_t chunk) {
            if (!receives_result) {
                return;
            }
            range const chunk_range = chunks[chunk];
            reduction.run(call.dst() + chunk_range.begin * unit, chunk_range.count,
                          [&](std::size_t member, std::size_t first) -> const std::byte * {
                              return member == call.self()
                                         ? call.src() + (chunk_range.begin + first) * unit
                                         : call.stage_buffer_of(member) + first * unit;
                          });
        });
}

// Each member stages chunks of all other members' blocks and reduces the chunks of its own.
status reduce_scatter(execution &call, const chunking &chunks) {
    std::size_t const unit = call.unit_bytes;
    std::size_t const block = call.block_bytes();
    std::size_t const block_stride = chunks.chunk * unit;
    blockwise_reduction reduction(call);
    return run_one_phase(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            range const chunk_range = chunks[chunk];
            std::byte *const buffer = call.next_stage_buffer();
            for (std::size_t to = 0; to < call.size(); ++to) {
                if (to != call.self()) {
                    call.copy_to_stage_buffer(buffer + call.stage_block_index(call.self(), to) *
                                                           block_stride,
                                              call.src() + to * block + chunk_range.begin * unit,
                                              chunk_range.count * unit);
                }
            }
        },
        [&](std::size_t chunk) {
            range const chunk_range = chunks[chunk];
            reduction.run(call.dst() + chunk_range.begin * unit, chunk_range.count,
                          [&](std::size_t member, std::size_t first) -> const std::byte * {
                              return member == call.self()
                                         ? call.src() + call.self() * block +
                                               (chunk_range.begin + first) * unit
                                         : call.stage_buffer_of(member) +
                                               call.stage_block_index(member, call.self()) *
                                                   block_stride +
                                               first * unit;
                          });
        });
}

} // namespace

status run_flat(execution &call, std::size_t chunk_units) {
    chunking const chunks{call.args.amount, chunk_units};
    return call.args.what == operation::reduce_scatter ? reduce_scatter(call, chunks)
                                                       : reduce_flat(call, chunks);
}

// Each chunk has one partition per member. A member stages the partitions of the other members,
// reduces its own partition into the result area after the operands, and copies the other members'
// results out. The stage buffer is [chunk of operands][own partition of the result].
status run_reduce_scatter_allgather(execution &call, std::size_t chunk_units) {
    chunking const chunks{call.args.amount, chunk_units};
    bool const receives_result = call.args.what == operation::allreduce || call.is_root();
    std::size_t const unit = call.unit_bytes;
    std::size_t const alignment = std::max<std::size_t>(1, cache_line_bytes / unit);
    std::size_t const result_offset =
        (chunk_units * unit + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
    auto const partition_of = [&](std::size_t chunk, std::size_t member) {
        return partition_range(chunks[chunk].count, call.size(), member, alignment);
    };
    return run_two_phases(
        call, chunks.num_chunks(),
        [&](std::size_t chunk) {
            range const chunk_range = chunks[chunk];
            range const own = partition_of(chunk, call.self());
            const std::byte *const from = call.src() + chunk_range.begin * unit;
            std::byte *const buffer = call.next_stage_buffer();
            std::size_t const behind = own.begin + own.count;
            call.copy_to_stage_buffer(buffer, from, own.begin * unit);
            call.copy_to_stage_buffer(buffer + behind * unit, from + behind * unit,
                                      (chunk_range.count - behind) * unit);
        },
        [&](std::size_t chunk) {
            range const own = partition_of(chunk, call.self());
            std::size_t const begin = chunks[chunk].begin + own.begin;
            std::byte *const result = call.next_stage_buffer() + result_offset;
            // Not directly into dst: in place, dst is an operand.
            for (std::size_t first = 0; first < own.count;) {
                std::size_t const n =
                    std::min(own.count - first, cache_block_buffer::elements_of(unit));
                std::byte *const out = result + first * unit;
                reduce_in_order(
                    call.reduce, out, call.size(), n, [&](std::size_t member) -> const std::byte * {
                        return member == call.self()
                                   ? call.src() + (begin + first) * unit
                                   : call.stage_buffer_of(member) + (own.begin + first) * unit;
                    });
                if (receives_result) {
                    call.copy_to_user(call.dst() + (begin + first) * unit, out, n * unit);
                }
                first += n;
            }
        },
        [&](std::size_t chunk) {
            for (std::size_t step = 1; receives_result && step < call.size(); ++step) {
                std::size_t const from = (call.self() + step) % call.size();
                range const partition = partition_of(chunk, from);
                call.copy_to_user(call.dst() + (chunks[chunk].begin + partition.begin) * unit,
                                  call.stage_buffer_of(from) + result_offset,
                                  partition.count * unit);
            }
        });
}

} // namespace diomp::coll
