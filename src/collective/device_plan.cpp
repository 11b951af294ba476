// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/device_plan.h"

#include "collective/block_table.h"
#include "collective/execution.h"

#include <algorithm>
#include <utility>

namespace diomp::collective {
namespace {

using sync::operation;

/// Shares of a reduction begin at multiples of it, so that kernels load whole packs.
constexpr std::size_t share_grain_bytes = 256;

std::size_t unit_of(const request &asked) {
    return asked.type == 0 ? 1 : ompx_type_size(asked.type);
}

/// Of the member that has them; of an alltoallv those that it receives.
block_table table_of(const request &asked) {
    return has_block_lists(asked.what) ? block_table(blocks_of(*asked.blocks))
                                       : block_table(asked.amount * unit_of(asked));
}

bool overlap(const std::byte *one, std::size_t one_bytes, const std::byte *other,
             std::size_t other_bytes) {
    return one != nullptr && other != nullptr && one < other + other_bytes &&
           other < one + one_bytes;
}

/// Of any member: then the call is made in the way that suits all.
bool is_in_place(std::span<const device_buffers> all) {
    return std::ranges::any_of(all,
                               [](const device_buffers &each) { return each.dst == each.src; });
}

/// Puts one member's plans together.
class device_planner {
public:
    device_planner(const request &asked, std::span<const device_buffers> all, std::size_t member)
        : asked_(asked), all_(all), self_(member), own_(all[member]), blocks_(table_of(asked)) {}

    void copy_from_root() { copy(own_.dst, all_[root()].dst, blocks_.size(self_)); }
    void copy_part_from_root() {
        if (std::size_t const nbytes = blocks_.size(self_); nbytes > 0) {
            copy(own_.dst, all_[root()].src + before(root()), nbytes);
        }
    }
    void copy_block_to_root() {
        if (std::size_t const nbytes = blocks_.size(self_); nbytes > 0) {
            copy(all_[root()].dst + before(root()), own_.src, nbytes);
        }
    }
    void copy_block_to_all() {
        for_others_first([&](std::size_t other) {
            copy(all_[other].dst + blocks_.offset(self_), own_.src, blocks_.size(self_));
        });
    }
    void copy_blocks_from_all() {
        for_others_first([&](std::size_t other) {
            if (std::size_t const nbytes = blocks_.size(other); nbytes > 0) {
                copy(own_.dst + blocks_.offset(other), all_[other].src + before(other), nbytes);
            }
        });
    }
    void reduce_block() { reduce(own_.dst, blocks_.offset(self_), asked_.amount, all_.size()); }
    /// Of the first `num_operands`.
    void reduce_share_to(std::size_t member, std::size_t num_operands) {
        reduce(all_[member].dst + share_at(), share_at(), own_share().count, num_operands);
    }
    void reduce_share_to(std::size_t member) { reduce_share_to(member, all_.size()); }
    void reduce_share_to_root() { reduce_share_to(root()); }
    void reduce_share_to_all() {
        reduce_share_to(self_);
        for_others_first([&](std::size_t other) { copy_share(other, own_.dst); });
    }
    // Block 0 of the others is read by member 0 alone, were it not for the shares: after the first
    // phase by nobody.
    void reduce_block_in_place() {
        reduce_share_to(0);
        end_phase();
        if (self_ != 0) {
            reduce_block();
        }
    }
    // Each result is the one before it and one operand more.
    void scan_share() {
        for (std::size_t member = 1; member < all_.size(); ++member) {
            reduce_pair(member, member == 1 ? all_[0].src : all_[member - 1].dst, all_[member].src);
        }
        copy_share(0, all_[0].src);
    }
    // In place that would take the operand away that the next result needs. So the last result is
    // made first, each of all its operands.
    void exclusive_scan_share() {
        bool const from_operands = is_in_place(all_);
        for (std::size_t i = 2; i < all_.size(); ++i) {
            if (from_operands) {
                reduce_share_to(all_.size() + 1 - i, all_.size() + 1 - i);
            } else {
                reduce_pair(i, i == 2 ? all_[0].src : all_[i - 1].dst, all_[i - 1].src);
            }
        }
        if (all_.size() > 1) {
            copy_share(1, all_[0].src);
        }
    }
    // Block i of member j and block j of member i change places, whichever of the two is in place.
    // Each member sees to the pairs with those that follow it, half of all.
    void exchange_blocks(std::span<std::byte> aside) {
        copy(own_.dst + blocks_.offset(self_), own_.src + blocks_.offset(self_),
             blocks_.size(self_));
        for (std::size_t step = 1; 2 * step <= all_.size(); ++step) {
            std::size_t const other = (self_ + step) % all_.size();
            bool const is_others = 2 * step == all_.size() && other < self_;
            if (!is_others) {
                exchange_blocks_with(other, aside);
            }
        }
    }

    std::vector<device_plan> take() {
        end_phase();
        return std::move(phases_);
    }

private:
    [[nodiscard]] std::size_t root() const { return static_cast<std::size_t>(asked_.root); }
    /// Bytes before the own block in another's buffer of blocks for all.
    [[nodiscard]] std::size_t before(std::size_t other) const {
        return has_block_lists(asked_.what) ? all_[other].before : blocks_.offset(self_);
    }
    [[nodiscard]] range own_share() const {
        return share_of(asked_.amount, all_.size(), self_,
                        std::max<std::size_t>(1, share_grain_bytes / unit_of(asked_)));
    }
    /// Bytes before it.
    [[nodiscard]] std::size_t share_at() const { return own_share().begin * unit_of(asked_); }
    void copy_share(std::size_t member, const std::byte *from) {
        copy(all_[member].dst + share_at(), from + share_at(), own_share().count * unit_of(asked_));
    }
    void reduce_pair(std::size_t member, const std::byte *first, const std::byte *second) {
        if (std::size_t const count = own_share().count; count > 0) {
            made_.reductions.push_back(
                {all_[member].dst + share_at(), {first + share_at(), second + share_at()}, count});
        }
    }
    void exchange_blocks_with(std::size_t other, std::span<std::byte> aside) {
        std::size_t const here = blocks_.offset(other);
        std::size_t const there = blocks_.offset(self_);
        for (std::size_t done = 0; done < blocks_.size(other); done += aside.size()) {
            std::size_t const nbytes = std::min(aside.size(), blocks_.size(other) - done);
            copy(aside.data(), own_.src + here + done, nbytes);
            copy(own_.dst + here + done, all_[other].src + there + done, nbytes);
            copy(all_[other].dst + there + done, aside.data(), nbytes);
        }
    }
    void end_phase() { phases_.push_back(std::exchange(made_, {})); }
    /// From the next member on, so that not all begin with the same one.
    template <typename Use>
    void for_others_first(Use &&use) {
        for (std::size_t i = 1; i <= all_.size(); ++i) {
            use((self_ + i) % all_.size());
        }
    }
    void copy(std::byte *to, const std::byte *from, std::size_t nbytes) {
        if (to != from && nbytes > 0) {
            made_.copies.push_back({to, from, nbytes});
        }
    }
    void reduce(std::byte *to, std::size_t offset, std::size_t count, std::size_t num_operands) {
        if (count == 0) {
            return;
        }
        device_reduction &added = made_.reductions.emplace_back();
        added.to = to;
        added.count = count;
        for (const device_buffers &each : all_.first(num_operands)) {
            added.operands.push_back(each.src + offset);
        }
    }

    const request &asked_;
    std::span<const device_buffers> const all_;
    std::size_t const self_;
    device_buffers const own_;
    block_table const blocks_; ///< of the own buffer of blocks, if it has one
    device_plan made_;         ///< of this phase
    std::vector<device_plan> phases_;
};

} // namespace

bool has_device_plan(const request &asked) {
    bool const is_for_processor =
        is_reduction(asked.what) &&
        (user_operators::is_user_defined(asked.op) || asked.type == OMPX_LONG_DOUBLE);
    if (is_for_processor) {
        return false;
    }
    switch (asked.what) {
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
        return largest_block(asked) > 0;
    case operation::alltoallv:
        return true;
    default:
        return false;
    }
}

std::size_t largest_block(const request &asked) {
    return has_block_lists(asked.what) ? std::ranges::max(blocks_of(*asked.blocks).nbytes)
                                       : asked.amount * unit_of(asked);
}

bool fits_device_plan(const request &asked, const device_buffers &own, const buffer_use &use,
                      std::size_t member) {
    if (!overlap(own.dst, use.dst_bytes, own.src, use.src_bytes)) {
        return true;
    }
    std::size_t const before = table_of(asked).offset(member);
    switch (asked.what) {
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

bool needs_piece_aside(const request &asked, std::span<const device_buffers> all) {
    return asked.what == operation::alltoall && is_in_place(all);
}

std::vector<device_plan> make_device_plans(const request &asked,
                                           std::span<const device_buffers> all, std::size_t member,
                                           std::span<std::byte> aside) {
    device_planner making(asked, all, member);
    switch (asked.what) {
    case operation::bcast:
        making.copy_from_root();
        break;
    case operation::scatter:
    case operation::scatterv:
        making.copy_part_from_root();
        break;
    case operation::gather:
    case operation::gatherv:
        making.copy_block_to_root();
        break;
    case operation::allgather:
        making.copy_block_to_all();
        break;
    case operation::alltoall:
        if (needs_piece_aside(asked, all)) {
            making.exchange_blocks(aside);
            break;
        }
        [[fallthrough]];
    case operation::alltoallv:
    case operation::allgatherv:
        making.copy_blocks_from_all();
        break;
    case operation::reduce_scatter:
        if (is_in_place(all)) {
            making.reduce_block_in_place();
        } else {
            making.reduce_block();
        }
        break;
    case operation::reduce:
        making.reduce_share_to_root();
        break;
    case operation::scan:
        making.scan_share();
        break;
    case operation::exscan:
        making.exclusive_scan_share();
        break;
    default:
        making.reduce_share_to_all();
        break;
    }
    return making.take();
}

} // namespace diomp::collective
