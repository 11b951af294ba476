// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/device_plan.h"

#include "coll/block_table.h"
#include "coll/internal/execution.h"

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

/// Records the steps of one member, phase by phase.
class phase_recorder {
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

/// Builds the plans of one member.
class device_plan_builder {
public:
    device_plan_builder(const request &args, std::span<const device_buffers> all,
                        std::size_t member)
        : args_(args), all_(all), self_(member), own_(all[member]), blocks_(table_of(args)) {}

    void copy_from_root() { steps_.copy(own_.dst, all_[root()].dst, blocks_.size(self_)); }
    void copy_block_from_root() {
        if (std::size_t const nbytes = blocks_.size(self_); nbytes > 0) {
            steps_.copy(own_.dst, all_[root()].src + before(root()), nbytes);
        }
    }
    void copy_block_to_root() {
        if (std::size_t const nbytes = blocks_.size(self_); nbytes > 0) {
            steps_.copy(all_[root()].dst + before(root()), own_.src, nbytes);
        }
    }
    void copy_block_to_all() {
        for_others_first([&](std::size_t other) {
            steps_.copy(all_[other].dst + blocks_.offset(self_), own_.src, blocks_.size(self_));
        });
    }
    void copy_blocks_from_all() {
        for_others_first([&](std::size_t other) {
            if (std::size_t const nbytes = blocks_.size(other); nbytes > 0) {
                steps_.copy(own_.dst + blocks_.offset(other), all_[other].src + before(other),
                            nbytes);
            }
        });
    }
    void reduce_block() { reduce(own_.dst, blocks_.offset(self_), args_.amount, all_.size()); }
    /// Reduces the first `num_operands` operands.
    void reduce_partition_to(std::size_t member, std::size_t num_operands) {
        reduce(all_[member].dst + partition_offset(), partition_offset(), own_partition().count,
               num_operands);
    }
    void reduce_partition_to(std::size_t member) { reduce_partition_to(member, all_.size()); }
    void reduce_partition_to_root() { reduce_partition_to(root()); }
    void reduce_partition_to_all() {
        reduce_partition_to(self_);
        for_others_first([&](std::size_t other) { copy_partition(other, own_.dst); });
    }
    // Only results for member 0 read block 0 of the other members, and the first phase computes
    // them in partitions. After it no member reads block 0.
    void reduce_block_in_place() {
        reduce_partition_to(0);
        steps_.end_phase();
        if (self_ != 0) {
            reduce_block();
        }
    }
    // Each result is the previous result combined with one more operand.
    void scan_partition() {
        for (std::size_t member = 1; member < all_.size(); ++member) {
            reduce_pair(member, member == 1 ? all_[0].src : all_[member - 1].dst, all_[member].src);
        }
        copy_partition(0, all_[0].src);
    }
    // In place that would overwrite the operand that the next result needs. So the last result is
    // computed first, each from all its operands.
    void exclusive_scan_partition() {
        bool const from_operands = is_in_place(all_);
        for (std::size_t i = 2; i < all_.size(); ++i) {
            if (from_operands) {
                reduce_partition_to(all_.size() + 1 - i, all_.size() + 1 - i);
            } else {
                reduce_pair(i, i == 2 ? all_[0].src : all_[i - 1].dst, all_[i - 1].src);
            }
        }
        if (all_.size() > 1) {
            copy_partition(1, all_[0].src);
        }
    }
    // Exchanges block i of member j with block j of member i, even if only one of the two is in
    // place. Each member handles the pairs with the members that follow it, half of all.
    void exchange_blocks(std::span<std::byte> scratch) {
        steps_.copy(own_.dst + blocks_.offset(self_), own_.src + blocks_.offset(self_),
                    blocks_.size(self_));
        for (std::size_t step = 1; 2 * step <= all_.size(); ++step) {
            std::size_t const other = (self_ + step) % all_.size();
            bool const is_others = 2 * step == all_.size() && other < self_;
            if (!is_others) {
                exchange_blocks_with(other, scratch);
            }
        }
    }

    std::vector<device_plan> take() { return steps_.take(); }

private:
    [[nodiscard]] std::size_t root() const { return static_cast<std::size_t>(args_.root); }
    /// Offset of the own block in another member's buffer.
    [[nodiscard]] std::size_t before(std::size_t other) const {
        return has_block_lists(args_.what) ? all_[other].before : blocks_.offset(self_);
    }
    [[nodiscard]] range own_partition() const {
        return partition_range(
            args_.amount, all_.size(), self_,
            std::max<std::size_t>(1, partition_alignment_bytes / unit_of(args_)));
    }
    /// Offset of the own partition in bytes.
    [[nodiscard]] std::size_t partition_offset() const {
        return own_partition().begin * unit_of(args_);
    }
    void copy_partition(std::size_t member, const std::byte *from) {
        steps_.copy(all_[member].dst + partition_offset(), from + partition_offset(),
                    own_partition().count * unit_of(args_));
    }
    void reduce_pair(std::size_t member, const std::byte *first, const std::byte *second) {
        steps_.reduce(all_[member].dst + partition_offset(),
                      {first + partition_offset(), second + partition_offset()},
                      own_partition().count);
    }
    void exchange_blocks_with(std::size_t other, std::span<std::byte> scratch) {
        std::size_t const own_block_offset = blocks_.offset(other);
        std::size_t const other_block_offset = blocks_.offset(self_);
        for (std::size_t done = 0; done < blocks_.size(other); done += scratch.size()) {
            std::size_t const nbytes = std::min(scratch.size(), blocks_.size(other) - done);
            steps_.copy(scratch.data(), own_.src + own_block_offset + done, nbytes);
            steps_.copy(own_.dst + own_block_offset + done,
                        all_[other].src + other_block_offset + done, nbytes);
            steps_.copy(all_[other].dst + other_block_offset + done, scratch.data(), nbytes);
        }
    }
    /// Starts with the next member, so that the members do not all access the same one.
    template <typename Use>
    void for_others_first(Use &&use) {
        for (std::size_t i = 1; i <= all_.size(); ++i) {
            use((self_ + i) % all_.size());
        }
    }
    void reduce(std::byte *to, std::size_t offset, std::size_t count, std::size_t num_operands) {
        std::vector<const void *> operands;
        for (const device_buffers &each : all_.first(num_operands)) {
            operands.push_back(each.src + offset);
        }
        steps_.reduce(to, std::move(operands), count);
    }

    const request &args_;
    std::span<const device_buffers> const all_;
    std::size_t const self_;
    device_buffers const own_;
    block_table const blocks_; ///< of the own buffer, if it has blocks
    phase_recorder steps_;
};

} // namespace

bool has_device_plan(const request &args) {
    bool const needs_host = is_reduction(args.what) && (user_operators::is_user_defined(args.op) ||
                                                        args.type == OMPX_LONG_DOUBLE);
    if (needs_host) {
        return false;
    }
    switch (args.what) {
    case operation::bcast:
    case operation::reduce:
    case operation::allreduce:
    case operation::gather:
    case operation::scatter:
    case operation::allgather:
    case operation::reduce_scatter:
    case operation::alltoall:
    case operation::gatherv:
    case operation::scatterv:
    case operation::allgatherv:
    case operation::scan:
    case operation::exscan:
        return largest_block(args) > 0;
    case operation::alltoallv:
        return true;
    default:
        return false;
    }
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
    device_plan_builder builder(args, all, member);
    switch (args.what) {
    case operation::bcast:
        builder.copy_from_root();
        break;
    case operation::scatter:
    case operation::scatterv:
        builder.copy_block_from_root();
        break;
    case operation::gather:
    case operation::gatherv:
        builder.copy_block_to_root();
        break;
    case operation::allgather:
        builder.copy_block_to_all();
        break;
    case operation::alltoall:
        if (needs_scratch(args, all)) {
            builder.exchange_blocks(scratch);
            break;
        }
        [[fallthrough]];
    case operation::alltoallv:
    case operation::allgatherv:
        builder.copy_blocks_from_all();
        break;
    case operation::reduce_scatter:
        if (is_in_place(all)) {
            builder.reduce_block_in_place();
        } else {
            builder.reduce_block();
        }
        break;
    case operation::reduce:
        builder.reduce_partition_to_root();
        break;
    case operation::scan:
        builder.scan_partition();
        break;
    case operation::exscan:
        builder.exclusive_scan_partition();
        break;
    default:
        builder.reduce_partition_to_all();
        break;
    }
    return builder.take();
}

} // namespace diomp::coll
