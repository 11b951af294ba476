// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/members.h"

#include "coll/internal/check.h"
#include "coll/internal/select.h"

#include <algorithm>
#include <memory>

namespace diomp::coll {
namespace {

using sync::operation;

/// Scratch memory for the operands of a scan chunk, or of a reduction in member order.
constexpr std::size_t chunk_scratch_bytes = std::size_t{1} << 20;

// ---- Zero-copy, in the arena ----

struct arena_buffers {
    std::vector<buffer_view> all;     ///< [member]; empty if a relevant buffer lies elsewhere
    std::size_t shared_bcast_min = 0; ///< see execution
};

/// Publishes the own buffers and gets those of all members in one round.
result<arena_buffers> find_in_arena(const member_call &call) {
    group::local_group &local_members = call.members.local_members();
    DIOMP_TRY(local_members.begin_call());
    bool usable = true;
    std::vector<buffer_view> own;
    for (std::size_t i = 0; i < call.map.num_own(); ++i) {
        buffer_view const &each = own.emplace_back(view_of(call.chosen, call.src(i), call.dst(i)));
        bool const needs_dst =
            call.args.what == operation::reduce_scatter || call.args.what == operation::bcast;
        bool const lacks_dst = needs_dst && each.dst == nullptr;
        usable = usable && allows_zero_copy(call.args, each, call.map.own(i)) && !lacks_dst;
    }
    std::memcpy(local_members.next_stage_buffer(), own.data(), own.size() * sizeof(own.front()));
    DIOMP_TRY(local_members.barrier().arrive_and_wait(
        call.signature, {usable ? 1U : 0U, call.chosen.shared_bcast_min_bytes}));
    arena_buffers found;
    found.all.resize(call.map.size());
    for (std::size_t rank = 0; rank < call.map.num_ranks(); ++rank) {
        if (local_members.barrier().payload_of(rank)[0] == 0) {
            return arena_buffers{};
        }
        found.shared_bcast_min = std::max<std::size_t>(found.shared_bcast_min,
                                                       local_members.barrier().payload_of(rank)[1]);
        for (std::size_t i = 0; i < call.map.num_members_of(rank); ++i) {
            std::memcpy(&found.all[call.map.member(rank, i)],
                        local_members.stage_buffer_of(rank) + i * sizeof(buffer_view),
                        sizeof(buffer_view));
        }
    }
    return found;
}

// Every rank reduces a partition for all, or the blocks of its own members.
status reduce_in_arena(const member_call &call, const std::vector<buffer_view> &buffers) {
    auto const reduce_to = [&](const std::vector<std::byte *> &destinations, std::size_t offset,
                               range partition) {
        reduce_partition(call.reduce, call.unit_bytes, buffers, offset, partition, destinations,
                         [](std::byte *to, const std::byte *from, std::size_t nbytes) {
                             rma::copy_bytes(to, from, nbytes, SIZE_MAX);
                         });
    };
    std::size_t const count = call.args.amount;
    if (call.args.what == operation::reduce_scatter) {
        for (std::size_t i = 0; i < call.map.num_own(); ++i) {
            reduce_to({call.dst(i)}, call.map.own(i) * call.block_bytes(), {0, count});
        }
        return call.members.local_members().barrier().arrive_and_wait(call.signature);
    }
    std::vector<std::byte *> destinations;
    for (std::size_t member = 0; member < call.map.size(); ++member) {
        if (call.args.what == operation::allreduce || member == call.root()) {
            destinations.push_back(buffers[member].dst);
        }
    }
    reduce_to(destinations, 0,
              partition_range(count, call.map.num_ranks(), call.map.self(),
                              std::max<std::size_t>(1, cache_line_bytes / call.unit_bytes)));
    return call.members.local_members().barrier().arrive_and_wait(call.signature);
}

// Every rank writes its own members' buffers, or a partition of all, and reads the root's once.
status bcast_in_arena(const member_call &call, const std::vector<buffer_view> &buffers,
                      std::size_t shared_bcast_min) {
    std::size_t const block = call.block_bytes();
    const std::byte *const source = buffers[call.root()].dst;
    std::vector<std::byte *> destinations = bcast_destinations(buffers, call.root());
    range partition{0, block};
    if (uses_shared_bcast(shared_bcast_min, block, buffers)) {
        partition =
            partition_range(block, call.map.num_ranks(), call.map.self(), bcast_alignment_bytes);
    } else {
        std::erase_if(destinations, [&](std::byte *target) {
            return !std::ranges::any_of(
                call.own, [target](const endpoint_buffers &each) { return each.dst == target; });
        });
    }
    write_to_all(call.chosen, block, partition, source, destinations);
    return call.members.local_members().barrier().arrive_and_wait(call.signature);
}

// ---- Within each rank, then among the ranks ----

status bcast_through_ranks(const member_call &call) {
    std::size_t const from = call.owns_root() ? call.map.index_in_rank(call.root()) : 0;
    DIOMP_TRY(call.run_ranks(operation::bcast, call.dst(from), nullptr, call.block_bytes(),
                             call.map.rank_of(call.root())));
    std::vector<std::byte *> destinations;
    for (std::size_t i = 0; i < call.map.num_own(); ++i) {
        if (call.dst(i) != call.dst(from)) {
            destinations.push_back(call.dst(i));
        }
    }
    write_to_all(call.chosen, call.block_bytes(), {0, call.block_bytes()}, call.dst(from),
                 destinations);
    return {};
}

/// Combines the operands of the own members, `num_blocks` blocks each.
std::unique_ptr<std::byte[]> combine_own(const member_call &call, std::size_t num_blocks) {
    std::size_t const count = num_blocks * call.args.amount;
    auto combined = std::make_unique_for_overwrite<std::byte[]>(count * call.unit_bytes);
    std::size_t const step = cache_block_buffer::elements_of(call.unit_bytes);
    for (std::size_t first = 0; first < count; first += step) {
        std::size_t const at = first * call.unit_bytes;
        reduce_in_order(call.reduce, combined.get() + at, call.map.num_own(),
                        std::min(step, count - first),
                        [&](std::size_t i) { return call.src(i) + at; });
    }
    return combined;
}

// If all ranks have equally many members, a rank's blocks are reduced as one block; else the ranks
// reduce block by block.
status reduce_scatter(const member_call &call, const std::byte *operand) {
    std::size_t const block = call.block_bytes();
    std::size_t const k = call.map.max_per_rank();
    bool const is_regular = call.map.contiguous() && k * call.map.num_ranks() == call.map.size();
    auto result = std::make_unique_for_overwrite<std::byte[]>(call.map.num_own() * block);
    if (is_regular) {
        DIOMP_TRY(
            call.run_ranks(operation::reduce_scatter, result.get(), operand, k * call.args.amount));
    }
    for (std::size_t member = 0; !is_regular && member < call.map.size(); ++member) {
        bool const is_own = call.map.rank_of(member) == call.map.self();
        std::byte *const to =
            is_own ? result.get() + call.map.index_in_rank(member) * block : nullptr;
        DIOMP_TRY(call.run_ranks(operation::reduce, to, operand + member * block, call.args.amount,
                                 call.map.rank_of(member)));
    }
    for (std::size_t i = 0; i < call.map.num_own(); ++i) {
        std::memcpy(call.dst(i), result.get() + i * block, block);
    }
    return {};
}

status reduce_through_ranks(const member_call &call) {
    bool const scatters = call.args.what == operation::reduce_scatter;
    std::unique_ptr<std::byte[]> combined;
    const std::byte *operand = call.src(0);
    if (call.map.num_own() > 1) {
        combined = combine_own(call, scatters ? call.map.size() : 1);
        operand = combined.get();
    }
    if (scatters) {
        return reduce_scatter(call, operand);
    }
    std::size_t const first = call.owns_root() ? call.map.index_in_rank(call.root()) : 0;
    bool const to_all = call.args.what == operation::allreduce;
    DIOMP_TRY(call.run_ranks(call.args.what, to_all || call.owns_root() ? call.dst(first) : nullptr,
                             operand, call.args.amount,
                             to_all ? 0 : call.map.rank_of(call.root())));
    for (std::size_t i = 1; to_all && i < call.map.num_own(); ++i) {
        rma::copy_bytes(call.dst(i), call.dst(0), call.block_bytes(),
                        call.chosen.stream_threshold_bytes);
    }
    return {};
}

// ---- Every rank gets all operands, in chunks ----

/// Chunks of the operands of all members.
class all_operands {
public:
    /// `num_blocks` operands per member.
    all_operands(const member_call &call, std::size_t num_blocks)
        : call_(call), num_blocks_(num_blocks), per_rank_(call.map.max_per_rank() * num_blocks) {
        std::size_t const slots = (call.map.num_ranks() + 1) * per_rank_;
        step_ = std::max<std::size_t>(1, chunk_scratch_bytes / slots / call.unit_bytes);
        step_ = std::min(step_, call.args.amount);
        memory_ = std::make_unique_for_overwrite<std::byte[]>(slots * step_ * call.unit_bytes);
    }

    [[nodiscard]] std::size_t step() const { return step_; }
    /// Elements [first, first + count) of every operand.
    status gather(std::size_t first, std::size_t count) {
        count_ = count;
        std::size_t const nbytes = count * call_.unit_bytes;
        std::byte *const own = memory_.get() + call_.map.num_ranks() * per_rank_ * nbytes;
        for (std::size_t i = 0; i < call_.map.num_own(); ++i) {
            for (std::size_t block = 0; block < num_blocks_; ++block) {
                std::memcpy(own + (i * num_blocks_ + block) * nbytes,
                            call_.src(i) + block * call_.block_bytes() + first * call_.unit_bytes,
                            nbytes);
            }
        }
        return call_.run_ranks(operation::allgather, memory_.get(), own, per_rank_ * nbytes);
    }
    [[nodiscard]] const std::byte *operand(std::size_t member, std::size_t block = 0) const {
        std::size_t const at = call_.map.rank_of(member) * per_rank_ +
                               call_.map.index_in_rank(member) * num_blocks_ + block;
        return memory_.get() + at * count_ * call_.unit_bytes;
    }

private:
    const member_call &call_;
    std::size_t num_blocks_;
    std::size_t per_rank_;
    std::size_t step_ = 1;
    std::size_t count_ = 0;
    std::unique_ptr<std::byte[]> memory_;
};

status reduce_in_member_order(const member_call &call) {
    bool const scatters = call.args.what == operation::reduce_scatter;
    all_operands operands(call, scatters ? call.map.size() : 1);
    // In place an operand of a later chunk must not be overwritten before it is read.
    std::vector<std::unique_ptr<std::byte[]>> results;
    results.reserve(call.map.num_own());
    for (std::size_t i = 0; i < call.map.num_own(); ++i) {
        results.push_back(std::make_unique_for_overwrite<std::byte[]>(call.block_bytes()));
    }
    for (std::size_t first = 0; first < call.args.amount; first += operands.step()) {
        std::size_t const count = std::min(operands.step(), call.args.amount - first);
        DIOMP_TRY(operands.gather(first, count));
        for (std::size_t i = 0; i < call.map.num_own(); ++i) {
            std::size_t const block = scatters ? call.map.own(i) : 0;
            reduce_in_order(call.reduce, results[i].get() + first * call.unit_bytes,
                            call.map.size(), count,
                            [&](std::size_t member) { return operands.operand(member, block); });
        }
    }
    for (std::size_t i = 0; i < call.map.num_own(); ++i) {
        if (call.args.what != operation::reduce || call.map.own(i) == call.root()) {
            std::memcpy(call.dst(i), results[i].get(), call.block_bytes());
        }
    }
    return {};
}

} // namespace

status member_call::run_ranks(sync::operation what, void *to, const void *from, std::size_t amount,
                              std::size_t root_rank) const {
    request inner;
    inner.what = what;
    inner.dst = to;
    inner.src = from;
    inner.amount = amount;
    bool const reduces = is_reduction(what);
    if (reduces) {
        inner.type = args.type;
        inner.op = args.op;
    }
    sync::call_signature made = signature;
    made.root = sync::call_signature::no_root;
    if (what == operation::bcast || what == operation::reduce) {
        inner.root = static_cast<int>(root_rank);
        made.root = static_cast<std::uint16_t>(root_rank);
    }
    return coll::run_ranks(members, inner, chosen, made, reduces ? reduce : reducer{},
                           reduces ? unit_bytes : 1);
}

/// Whether publishing all buffers may pay off. Equal on all members.
bool may_run_in_arena(const member_call &call) {
    bool const on_one_node = call.members.internode() == nullptr && call.map.num_ranks() > 1;
    bool const table_fits =
        call.map.max_per_rank() * sizeof(buffer_view) <= group::stage_memory::small_bytes;
    return on_one_node && table_fits && call.block_bytes() >= zero_copy_min_bytes;
}

status run_member_bcast(const member_call &call) {
    if (may_run_in_arena(call)) {
        auto buffers = find_in_arena(call);
        DIOMP_TRY(buffers);
        if (!buffers.value().all.empty()) {
            return bcast_in_arena(call, buffers.value().all, buffers.value().shared_bcast_min);
        }
    }
    return bcast_through_ranks(call);
}

status run_member_reduction(const member_call &call) {
    if (!call.reduce.commutative && !call.map.contiguous()) {
        return reduce_in_member_order(call);
    }
    if (may_run_in_arena(call)) {
        auto buffers = find_in_arena(call);
        DIOMP_TRY(buffers);
        if (!buffers.value().all.empty()) {
            return reduce_in_arena(call, buffers.value().all);
        }
    }
    return reduce_through_ranks(call);
}

status run_member_scan(const member_call &call) {
    bool const inclusive = call.args.what == operation::scan;
    all_operands operands(call, 1);
    for (std::size_t first = 0; first < call.args.amount; first += operands.step()) {
        std::size_t const count = std::min(operands.step(), call.args.amount - first);
        DIOMP_TRY(operands.gather(first, count));
        for (std::size_t i = 0; i < call.map.num_own(); ++i) {
            std::size_t const num = call.map.own(i) + (inclusive ? 1 : 0);
            std::byte *const to = call.dst(i) + first * call.unit_bytes;
            if (num == 1) {
                std::memcpy(to, operands.operand(0), count * call.unit_bytes);
            } else if (num > 1) {
                reduce_in_order(call.reduce, to, num, count,
                                [&](std::size_t member) { return operands.operand(member); });
            }
        }
    }
    return {};
}

status run_member_call(const member_call &call) {
    if (!has_block_lists(call.args.what) && call.args.amount == 0) {
        return call.members.arrive_and_wait(call.signature);
    }
    if (is_scan(call.args.what)) {
        return run_member_scan(call);
    }
    if (is_reduction(call.args.what)) {
        return run_member_reduction(call);
    }
    return call.args.what == operation::bcast ? run_member_bcast(call) : run_member_exchange(call);
}

} // namespace diomp::coll
