// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/device_plan.h"

#include "coll/block_table.h"
#include "coll/internal/execution.h"
#include "diomp/atomic.h"

#include <algorithm>
#include <utility>

namespace diomp::coll {
namespace {

using sync::operation;

/// Partitions of a reduction begin at multiples of this, so that kernels load full vectors.
constexpr std::size_t partition_alignment_bytes = 256;

std::size_t unit_of(const request &args) { return args.type == 0 ? 1 : ompx_type_size(args.type); }

/// Blocks of the member's buffer; for alltoallv the received blocks.
block_table table_of(const request &args) {
    return has_block_lists(args.what) ? block_table(blocks_of(*args.blocks))
                                      : block_table(args.amount * unit_of(args));
}

bool overlap(const std::byte *one, std::size_t one_bytes, const std::byte *other,
             std::size_t other_bytes) {
    return one != nullptr && other != nullptr && one < other + other_bytes &&
           other < one + one_bytes;
}

/// Whether any member's call is in place; then all use the in-place algorithm.
bool is_in_place(std::span<const device_buffers> all) {
    return std::ranges::any_of(all,
                               [](const device_buffers &each) { return each.dst == each.src; });
}

/// Records the plans of one member, phase by phase.
class plan_recorder {
public:
    void copy(std::byte *to, const std::byte *from, std::size_t nbytes) {
        if (to != from && nbytes > 0) {
            current_.copies.push_back({to, from, nbytes});
        }
    }
    void reduce(std::byte *to, std::vector<const void *> operands, std::size_t count) {
        if (count > 0) {
            current_.reductions.push_back({to, std::move(operands), count});
        }
    }
    void end_phase() { phases_.push_back(std::exchange(current_, {})); }
    std::vector<device_plan> take() {
        end_phase();
        return std::move(phases_);
    }

private:
    device_plan current_;
    std::vector<device_plan> phases_;
};

/// What all calls have: the buffers, and the caller among them.
struct plan_call {
    const request &args;
    std::span<const device_buffers> all;
    std::size_t self;

    [[nodiscard]] const device_buffers &own() const { return all[self]; }
    [[nodiscard]] std::size_t root() const { return static_cast<std::size_t>(args.root); }
    /// Starts with the next member, so that the members do not all access the same one.
    template <typename Use>
    void for_others_first(Use &&use) const {
        for (std::size_t i = 1; i <= all.size(); ++i) {
            use((self + i) % all.size());
        }
    }
};

/// Calls that copy blocks.
class block_copies {
public:
    block_copies(const plan_call &call, plan_recorder &plan)
        : call_(call), blocks_(table_of(call.args)), plan_(plan) {}

    void run(std::span<std::byte> scratch) {
        switch (call_.args.what) {
        case operation::bcast:
            plan_.copy(call_.own().dst, root().dst, own_bytes());
            break;
        case operation::scatter:
        case operation::scatterv:
            if (own_bytes() > 0) {
                plan_.copy(call_.own().dst, root().src + before(call_.root()), own_bytes());
            }
            break;
        case operation::gather:
        case operation::gatherv:
            if (own_bytes() > 0) {
                plan_.copy(root().dst + before(call_.root()), call_.own().src, own_bytes());
            }
            break;
        case operation::allgather:
            call_.for_others_first([&](std::size_t other) {
                plan_.copy(call_.all[other].dst + own_offset(), call_.own().src, own_bytes());
            });
            break;
        default:
            if (needs_scratch(call_.args, call_.all)) {
                exchange_blocks(scratch);
            } else {
                copy_from_all();
            }
        }
    }

private:
    void copy_from_all() {
        call_.for_others_first([&](std::size_t other) {
            if (std::size_t const nbytes = blocks_.size(other); nbytes > 0) {
                plan_.copy(call_.own().dst + blocks_.offset(other),
                           call_.all[other].src + before(other), nbytes);
            }
        });
    }
    // Exchanges block i of member j with block j of member i, even if only one of the two is in
    // place. Each member handles the pairs with the members that follow it, half of all.
    void exchange_blocks(std::span<std::byte> scratch) {
        plan_.copy(call_.own().dst + own_offset(), call_.own().src + own_offset(), own_bytes());
        std::size_t const n = call_.all.size();
        for (std::size_t step = 1; 2 * step <= n; ++step) {
            std::size_t const other = (call_.self + step) % n;
            bool const is_others = 2 * step == n && other < call_.self;
            if (!is_others) {
                exchange_blocks_with(other, scratch);
            }
        }
    }
    [[nodiscard]] const device_buffers &root() const { return call_.all[call_.root()]; }
    [[nodiscard]] std::size_t own_bytes() const { return blocks_.size(call_.self); }
    [[nodiscard]] std::size_t own_offset() const { return blocks_.offset(call_.self); }
    /// Offset of the own block in another member's buffer.
    [[nodiscard]] std::size_t before(std::size_t other) const {
        return has_block_lists(call_.args.what) ? call_.all[other].before : own_offset();
    }
    void exchange_blocks_with(std::size_t other, std::span<std::byte> scratch) {
        std::byte *const own_dst = call_.own().dst + blocks_.offset(other);
        const std::byte *const own_src = call_.own().src + blocks_.offset(other);
        for (std::size_t done = 0; done < blocks_.size(other); done += scratch.size()) {
            std::size_t const nbytes = std::min(scratch.size(), blocks_.size(other) - done);
            plan_.copy(scratch.data(), own_src + done, nbytes);
            plan_.copy(own_dst + done, call_.all[other].src + own_offset() + done, nbytes);
            plan_.copy(call_.all[other].dst + own_offset() + done, scratch.data(), nbytes);
        }
    }

    const plan_call &call_;
    block_table const blocks_; ///< of the own buffer, if it has blocks
    plan_recorder &plan_;
};

/// Calls that reduce: each member a partition of all operands, or a block.
class partition_reductions {
public:
    partition_reductions(const plan_call &call, plan_recorder &plan)
        : call_(call), plan_(plan),
          partition_(partition_range(
              call.args.amount, call.all.size(), call.self,
              std::max<std::size_t>(1, partition_alignment_bytes / unit_of(call.args)))),
          offset_(partition_.begin * unit_of(call.args)) {}

    void run() {
        switch (call_.args.what) {
        case operation::reduce_scatter:
            if (is_in_place(call_.all)) {
                reduce_block_in_place();
            } else {
                reduce_block();
            }
            break;
        case operation::reduce:
            reduce_to(call_.root());
            break;
        case operation::scan:
            scan();
            break;
        case operation::exscan:
            exclusive_scan();
            break;
        default:
            reduce_to(call_.self);
            call_.for_others_first([&](std::size_t other) { copy(other, call_.own().dst); });
        }
    }

private:
    void reduce_block() {
        reduce(call_.own().dst, call_.self * call_.args.amount * unit_of(call_.args),
               call_.args.amount, call_.all.size());
    }
    /// Reduces the own partition of all operands.
    void reduce_to(std::size_t member) { reduce_to(member, call_.all.size()); }
    // Only results for member 0 read block 0 of the other members, and the first phase computes
    // them in partitions. After it no member reads block 0.
    void reduce_block_in_place() {
        reduce_to(0);
        plan_.end_phase();
        if (call_.self != 0) {
            reduce_block();
        }
    }
    // Each result is the previous result combined with one more operand.
    void scan() {
        const auto &all = call_.all;
        for (std::size_t member = 1; member < all.size(); ++member) {
            reduce_pair(member, member == 1 ? all[0].src : all[member - 1].dst, all[member].src);
        }
        copy(0, all[0].src);
    }
    // In place that would overwrite the operand that the next result needs. So the last result is
    // computed first, each from all its operands.
    void exclusive_scan() {
        const auto &all = call_.all;
        bool const from_operands = is_in_place(all);
        for (std::size_t i = 2; i < all.size(); ++i) {
            if (from_operands) {
                reduce_to(all.size() + 1 - i, all.size() + 1 - i);
            } else {
                reduce_pair(i, i == 2 ? all[0].src : all[i - 1].dst, all[i - 1].src);
            }
        }
        if (all.size() > 1) {
            copy(1, all[0].src);
        }
    }

    /// Reduces the first `num_operands` operands.
    void reduce_to(std::size_t member, std::size_t num_operands) {
        reduce(call_.all[member].dst + offset_, offset_, partition_.count, num_operands);
    }
    void copy(std::size_t member, const std::byte *from) {
        plan_.copy(call_.all[member].dst + offset_, from + offset_,
                   partition_.count * unit_of(call_.args));
    }
    void reduce_pair(std::size_t member, const std::byte *first, const std::byte *second) {
        plan_.reduce(call_.all[member].dst + offset_, {first + offset_, second + offset_},
                     partition_.count);
    }
    void reduce(std::byte *to, std::size_t offset, std::size_t count, std::size_t num_operands) {
        std::vector<const void *> operands;
        for (const device_buffers &each : call_.all.first(num_operands)) {
            operands.push_back(each.src + offset);
        }
        plan_.reduce(to, std::move(operands), count);
    }

    const plan_call &call_;
    plan_recorder &plan_;
    range const partition_;    ///< the own one, in elements
    std::size_t const offset_; ///< of the own partition in bytes
};

} // namespace

bool has_device_plan(const request &args) {
    bool const needs_host = is_reduction(args.what) && (user_operators::is_user_defined(args.op) ||
                                                        args.type == OMPX_LONG_DOUBLE);
    return !needs_host && sync::carries_data(args.what) &&
           (args.what == operation::alltoallv || largest_block(args) > 0);
}

std::size_t largest_block(const request &args) {
    return has_block_lists(args.what) ? std::ranges::max(blocks_of(*args.blocks).nbytes)
                                      : args.amount * unit_of(args);
}

bool fits_device_plan(const request &args, const device_buffers &own, const buffer_use &use,
                      std::size_t member) {
    if (!overlap(own.dst, use.dst_bytes, own.src, use.src_bytes)) {
        return true;
    }
    std::size_t const before = table_of(args).offset(member);
    switch (args.what) {
    case operation::reduce:
    case operation::allreduce:
    case operation::reduce_scatter:
    case operation::alltoall:
    case operation::scan:
    case operation::exscan:
        return own.src == own.dst;
    case operation::gather:
    case operation::allgather:
    case operation::gatherv:
    case operation::allgatherv:
        return own.src == own.dst + before;
    case operation::scatter:
    case operation::scatterv:
        return own.dst == own.src + before;
    default:
        return false;
    }
}

bool needs_scratch(const request &args, std::span<const device_buffers> all) {
    return args.what == operation::alltoall && is_in_place(all);
}

std::vector<device_plan> make_device_plans(const request &args, std::span<const device_buffers> all,
                                           std::size_t member, std::span<std::byte> scratch) {
    plan_call const call{args, all, member};
    plan_recorder plan;
    if (is_reduction(args.what)) {
        partition_reductions(call, plan).run();
    } else {
        block_copies(call, plan).run(scratch);
    }
    return plan.take();
}

} // namespace diomp::coll
