// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two-level allreduce: the intra-node call combines the operands of a node, the leaders combine the
// results of the nodes, in the order of the nodes. Large data is split into slices, one for each
// member of a node if all nodes have equally many, and all slice owners work in parallel: one
// process seldom fills a network, and where ranks share cores all have the same amount of work.
#include "coll/internal/doubling_order.h"
#include "coll/internal/two_level_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

namespace diomp::coll {
namespace {

using sync::operation;

/// From so many members of a node on, each combines a partition of the operands, although only one
/// needs the result: all read twice the data then, where one would read the operands of all.
constexpr std::size_t split_min_members = 5;

// The leaders' algorithms. The constructors post the receives of all rounds at once, before the
// data is ready, so that no sender waits for them later.

/// Recursive doubling from `operand` to `data`, which may be the same. `received` has space for
/// num_messages operands.
class recursive_doubling {
public:
    recursive_doubling(two_level_call &call, const std::byte *operand, std::byte *data,
                       std::size_t count, std::byte *received, message_stream::rtr_mode rtr)
        : call_(call), order_(call.num_nodes(), call.own_node()), operand_(operand), data_(data),
          count_(count), nbytes_(count * call.unit_bytes), received_(received), fold_(call, rtr) {
        if (order_.folds() && !order_.is_folded()) {
            fold_.post_recv(leader(order_.fold_partner()), {received_of(0), nbytes_});
        }
        for (std::size_t round = 0; round < order_.num_rounds(); ++round) {
            message_stream &messages = rounds_.emplace_back(call, rtr);
            if (!order_.is_folded()) {
                messages.post_recv(leader(order_.partner(round)),
                                   {received_of(1 + round), nbytes_});
            }
        }
        message_stream &unfold = rounds_.emplace_back(call, rtr);
        if (order_.is_folded()) {
            unfold.post_recv(leader(order_.fold_partner()), {data_, nbytes_});
        }
    }

    /// Messages that a node receives at most.
    static std::size_t num_messages(std::size_t num_nodes) {
        return static_cast<std::size_t>(std::bit_width(num_nodes));
    }

    status run() {
        message_stream &unfold = rounds_.back();
        if (order_.is_folded()) {
            DIOMP_TRY(fold_.send(leader(order_.fold_partner()), {operand_, nbytes_}));
            DIOMP_TRY(fold_.finish());
            return unfold.wait_all_received();
        }
        const std::byte *have = operand_;
        if (order_.folds()) {
            DIOMP_TRY(fold_.wait_all_received());
            call_.reduce.apply(data_, have, received_of(0), count_);
            have = data_;
        }
        for (std::size_t round = 0; round < order_.num_rounds(); ++round) {
            std::size_t const partner = order_.partner(round);
            message_stream &messages = rounds_[round];
            DIOMP_TRY(messages.send(leader(partner), {have, nbytes_}));
            DIOMP_TRY(messages.wait_all_received());
            DIOMP_TRY(messages.finish());
            std::byte *const theirs = received_of(1 + round);
            // Both partners compute the same bits: the operand of the lower nodes is the first one,
            // even if the operator commutes, since equal values may differ in their bits.
            if (partner > call_.own_node()) {
                call_.reduce.apply(data_, have, theirs, count_);
            } else {
                call_.reduce.apply_to_second(data_, theirs, have, count_);
            }
            have = data_;
        }
        if (order_.folds()) {
            DIOMP_TRY(unfold.send(leader(order_.fold_partner()), {data_, nbytes_}));
        }
        return unfold.finish();
    }

private:
    [[nodiscard]] std::size_t leader(std::size_t node) const {
        return call_.layout().leaders[node];
    }
    [[nodiscard]] std::byte *received_of(std::size_t message) const {
        return received_ + message * round_up(nbytes_);
    }

    two_level_call &call_;
    doubling_order order_;
    const std::byte *operand_;
    std::byte *data_;
    std::size_t count_;
    std::size_t nbytes_;
    std::byte *received_;
    message_stream fold_;
    std::deque<message_stream> rounds_; ///< the last one unfolds
};

/// Each node reduces one partition of a slice. The slice owner there receives that partition from
/// all other nodes message by message, combines each message when it arrives, and sends the result
/// at once. `scratch` has space for the own partition from every node.
class reduce_scatter_allgather {
public:
    /// `slice_owners`: [node] the member that owns this slice there.
    reduce_scatter_allgather(two_level_call &call, const std::vector<std::uint32_t> &slice_owners,
                             const std::byte *operand, std::byte *data, std::size_t count,
                             std::byte *scratch, message_stream::rtr_mode rtr)
        : call_(call), slice_owners_(slice_owners), operand_(operand), data_(data), count_(count),
          scratch_(scratch), own_(call.own_node()), own_partition_(partition_of(own_)),
          stride_(round_up(own_partition_.size())), operands_(call, rtr), results_(call, rtr),
          first_operand_(call.num_nodes()) {
        for (std::size_t i = 1; i < call.num_nodes(); ++i) {
            std::size_t const node = (own_ + i) % call.num_nodes();
            first_operand_[node] = operands_.post_recv(
                slice_owners_[node], {scratch_ + node * stride_, own_partition_.size()});
            results_.post_recv(slice_owners_[node], partition_of(node));
        }
    }

    status run() {
        DIOMP_TRY(send_operands());
        std::size_t const elements = message_stream::default_message_bytes / call_.unit_bytes;
        for (std::size_t message = 0; message < results_.num_messages(own_partition_.size());
             ++message) {
            for (std::size_t node = 0; node < call_.num_nodes(); ++node) {
                if (node != own_) {
                    DIOMP_TRY(operands_.wait_received(first_operand_[node] + message));
                }
            }
            std::size_t const at = message * message_stream::default_message_bytes;
            std::size_t const n =
                std::min(elements, (own_partition_.size() - at) / call_.unit_bytes);
            reduce_blocks(call_, own_partition_.data() + at, call_.num_nodes(), n,
                          [&](std::size_t node) -> const std::byte * {
                              return (node == own_ ? operand_of(own_).data()
                                                   : scratch_ + node * stride_) +
                                     at;
                          });
            for (std::size_t i = 1; i < call_.num_nodes(); ++i) {
                std::size_t const node = (own_ + i) % call_.num_nodes();
                DIOMP_TRY(results_.send_message(slice_owners_[node], own_partition_, message));
            }
        }
        DIOMP_TRY(results_.wait_all_received());
        return results_.finish();
    }

private:
    [[nodiscard]] std::span<std::byte> partition_of(std::size_t node) const {
        std::size_t const unit = call_.unit_bytes;
        std::size_t const alignment = std::max<std::size_t>(1, cache_line_bytes / unit);
        range const partition = partition_range(count_, call_.num_nodes(), node, alignment);
        return {data_ + partition.begin * unit, partition.count * unit};
    }
    [[nodiscard]] std::span<const std::byte> operand_of(std::size_t node) const {
        std::span<std::byte> const partition = partition_of(node);
        return {operand_ + (partition.data() - data_), partition.size()};
    }

    // Sends the messages of all streams in turn, so that no node waits long for its first one.
    status send_operands() {
        std::size_t const num = call_.num_nodes();
        std::size_t max_messages = 0;
        for (std::size_t node = 0; node < num; ++node) {
            max_messages =
                std::max(max_messages, operands_.num_messages(partition_of(node).size()));
        }
        for (std::size_t message = 0; message < max_messages; ++message) {
            for (std::size_t i = 1; i < num; ++i) {
                std::size_t const node = (own_ + i) % num;
                if (message < operands_.num_messages(partition_of(node).size())) {
                    DIOMP_TRY(
                        operands_.send_message(slice_owners_[node], operand_of(node), message));
                }
            }
        }
        return {};
    }

    two_level_call &call_;
    const std::vector<std::uint32_t> &slice_owners_;
    const std::byte *operand_;
    std::byte *data_;
    std::size_t count_;
    std::byte *scratch_;
    std::size_t own_;
    std::span<std::byte> own_partition_;
    std::size_t stride_;
    message_stream operands_;
    message_stream results_;
    std::vector<std::size_t> first_operand_; ///< [node]
};

/// The messages must hold whole elements.
bool may_reduce_scatter(const two_level_call &call, std::size_t nbytes) {
    return call.takes(algorithm::reduce_scatter_allgather,
                      nbytes >= scatter_between_nodes_min_bytes) &&
           message_stream::default_message_bytes % call.unit_bytes == 0;
}

/// Number of slices of `nbytes`: one for each member of a node if all nodes have as many, else one.
std::size_t num_slices(const two_level_call &call, std::size_t nbytes) {
    auto const [min_count, max_count] = std::ranges::minmax(call.layout().sizes);
    return min_count == max_count && nbytes / max_count >= min_slice_bytes ? max_count : 1;
}

/// The slices of a chunk, and the intra-node calls before and after their reduction. All slices are
/// equal except the last, which includes the remainder.
class slices {
public:
    slices(two_level_call &call, range chunk, std::size_t num)
        : call_(call), num_(num), base_(chunk.begin * call.unit_bytes), count_(chunk.count) {
        std::size_t const alignment = std::max<std::size_t>(1, cache_line_bytes / call.unit_bytes);
        each_ = num == 1 ? count_ : count_ / num / alignment * alignment;
    }

    [[nodiscard]] std::size_t count_of(std::size_t index) const {
        return index + 1 < num_ ? each_ : count_ - (num_ - 1) * each_;
    }
    /// Offset of a slice in dst and src.
    [[nodiscard]] std::size_t offset_of(std::size_t index) const {
        return base_ + index * each_ * call_.unit_bytes;
    }
    /// Reduces the node's operands into dst of the slice owners.
    status reduce_intra_node() const {
        if (num_ == 1 && call_.num_local() >= split_min_members) {
            return call_.run_intra_node(operation::allreduce, call_.dst() + base_,
                                        call_.src() + base_, count_);
        }
        if (num_ == 1) {
            return reduce_to(0, base_, count_);
        }
        if (each_ > 0) {
            DIOMP_TRY(call_.run_intra_node(operation::reduce_scatter, call_.dst() + own_offset(),
                                           call_.src() + base_, each_));
        }
        return rest() == 0 ? status() : reduce_to(num_ - 1, rest_offset(), rest());
    }
    status bcast_intra_node() const {
        if (num_ == 1) {
            return bcast_from(0, base_, count_);
        }
        if (each_ > 0) {
            DIOMP_TRY(call_.run_intra_node(operation::allgather, call_.dst() + base_,
                                           call_.dst() + own_offset(), each_ * call_.unit_bytes));
        }
        return rest() == 0 ? status() : bcast_from(num_ - 1, rest_offset(), rest());
    }

private:
    [[nodiscard]] std::size_t own_offset() const {
        return offset_of(call_.layout().own_local_index);
    }
    [[nodiscard]] std::size_t rest() const { return count_ - num_ * each_; }
    [[nodiscard]] std::size_t rest_offset() const { return offset_of(num_); }
    status reduce_to(std::size_t index, std::size_t at, std::size_t count) const {
        return call_.run_intra_node(operation::reduce, call_.dst() + at, call_.src() + at, count,
                                    static_cast<int>(index));
    }
    status bcast_from(std::size_t index, std::size_t at, std::size_t count) const {
        return call_.run_intra_node(operation::bcast, call_.dst() + at, nullptr,
                                    count * call_.unit_bytes, static_cast<int>(index));
    }

    two_level_call &call_;
    std::size_t num_;
    std::size_t base_; ///< bytes
    std::size_t count_;
    std::size_t each_ = 0;
};

} // namespace

// The slices are reduced in dst of their owners.
status two_level_allreduce(two_level_call &call) {
    if (call.needs_rank_order()) {
        DIOMP_TRY(call.internode.agree_on_call());
        return reduce_in_rank_order(call, call.src(), true);
    }
    std::size_t const unit = call.unit_bytes;
    bool const uses_reduce_scatter = may_reduce_scatter(call, call.block_bytes());
    log_algorithm(uses_reduce_scatter ? algorithm::reduce_scatter_allgather
                                      : algorithm::recursive_doubling);
    std::size_t const num = uses_reduce_scatter ? num_slices(call, call.block_bytes()) : 1;
    chunking chunks = chunk_operand(call);
    chunks.chunk *= num;
    std::size_t const nbytes = std::min(chunks.chunk, chunks.total) * unit;
    std::size_t const index = call.layout().own_local_index;
    bool const has_slice = index < num;
    std::vector<std::uint32_t> const slice_owners = uses_reduce_scatter && has_slice
                                                        ? call.layout().members_with_index(index)
                                                        : std::vector<std::uint32_t>();
    std::size_t const lines = 2 * cache_line_bytes * (call.num_nodes() + num);
    std::size_t const scratch_bytes =
        uses_reduce_scatter ? 2 * (nbytes / num + num * unit) + lines
                            : recursive_doubling::num_messages(call.num_nodes()) * round_up(nbytes);
    std::byte *const scratch =
        has_slice ? call.internode.channel().scratch(scratch_bytes) : nullptr;
    // A node's only operand is read in place.
    bool const is_only_local_member = call.num_local() == 1;
    for (std::size_t i = 0; i < chunks.num_chunks(); ++i) {
        range const chunk = chunks[i];
        slices const cut(call, chunk, num);
        std::byte *const data = call.dst() + (has_slice ? cut.offset_of(index) : 0);
        const std::byte *const operand =
            is_only_local_member ? call.src() + cut.offset_of(index) : data;
        std::optional<recursive_doubling> doubling;
        std::optional<reduce_scatter_allgather> scatter_gather;
        auto const rtr =
            i == 0 ? message_stream::rtr_mode::implied : message_stream::rtr_mode::announced;
        if (has_slice && uses_reduce_scatter) {
            scatter_gather.emplace(call, slice_owners, operand, data, cut.count_of(index), scratch,
                                   rtr);
        } else if (has_slice) {
            doubling.emplace(call, operand, data, chunk.count, scratch, rtr);
        }
        if (i == 0) {
            DIOMP_TRY(call.internode.agree_on_call());
        }
        if (!is_only_local_member) {
            DIOMP_TRY(cut.reduce_intra_node());
        }
        if (scatter_gather) {
            DIOMP_TRY(scatter_gather->run());
        } else if (doubling) {
            DIOMP_TRY(doubling->run());
        }
        if (!is_only_local_member) {
            DIOMP_TRY(cut.bcast_intra_node());
        }
    }
    return {};
}

} // namespace diomp::coll
