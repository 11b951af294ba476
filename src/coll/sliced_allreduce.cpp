// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An allreduce in which every member of a node owns a slice, with the agreement in its messages.
//
// Rounds of the node barrier alternate with the owners' exchanges (slice_exchange.h), and each
// round carries a chunk of the operands and the slices of an earlier result:
//
//   stage operand 0 | round | reduce slice 0, exchange it   | round | reduce slice 1, exchange it
//                   |       | meanwhile stage operand 1     |       | meanwhile copy result 0,
//                   |       |                               |       | stage operand 2
//
// Members read an operand in the arena where it lies; others go through the stage buffers. The
// first two rounds are the arrivals of the call, and nothing is written to the program's memory
// before the second one: by then each member has the state of all members.
#include "coll/internal/slice_exchange.h"
#include "coll/internal/two_level_blocks.h"
#include "group/protocol_log.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

namespace diomp::coll {
namespace {

/// Messages are served whenever so much has been copied.
constexpr std::size_t bytes_between_polls = std::size_t{16} << 10;

class sliced_allreduce {
public:
    sliced_allreduce(two_level_call &call, const allreduce_choice &chosen)
        : call_(call), chosen_(chosen), local_(call.internode.local_members()),
          arrivals_(call.internode.arrivals()), self_(call.layout().own_local_index),
          chunks_{call.args.amount, chosen.chunk_elements},
          alignment_(std::max<std::size_t>(1, cache_line_bytes / call.unit_bytes)),
          operands_(local_.size()) {
        if (owns_slice()) {
            owners_ = call.layout().members_with_index(self_);
            std::size_t const slice_bytes = slice_stride();
            result_ = call.internode.channel().scratch(
                slice_bytes + slice_exchange::received_bytes(chosen.exchange, call.num_nodes(),
                                                             slice_bytes, call.unit_bytes));
        }
    }

    status run() {
        arrivals_.wait_for_stage_buffer();
        bool const is_published = allows_reading(call_.src());
        if (!is_published) {
            stage_operand(0);
        }
        arrivals_.arrive_for_all(is_published ? reinterpret_cast<std::uint64_t>(call_.src()) : 0);
        arrivals_.gather();
        for (std::size_t member = 0; member < local_.size(); ++member) {
            operands_[member] = reinterpret_cast<const std::byte *>(arrivals_.word_of(member));
        }
        for (std::size_t chunk = 0; chunk < chunks_.num_chunks(); ++chunk) {
            DIOMP_TRY(run_chunk(chunk));
        }
        copy_result(chunks_.num_chunks() - 1);
        return {};
    }

private:
    /// Whether other members on the node may read the operand where it lies.
    [[nodiscard]] bool allows_reading(const std::byte *operand) const {
        std::size_t const power_of_two = call_.unit_bytes & (~call_.unit_bytes + 1);
        return call_.chosen.in_arena(operand) && reinterpret_cast<std::uintptr_t>(operand) %
                                                         std::min<std::size_t>(power_of_two, 16) ==
                                                     0;
    }
    [[nodiscard]] std::size_t unit() const { return call_.unit_bytes; }
    [[nodiscard]] range slice_of(std::size_t chunk, std::size_t index) const {
        return partition_range(chunks_[chunk].count, chosen_.num_slices, index, alignment_);
    }
    /// A result lies behind the operand in a stage buffer.
    [[nodiscard]] std::size_t result_offset() const {
        return round_up(chosen_.chunk_elements * unit());
    }
    [[nodiscard]] std::size_t slice_stride() const { return chosen_.stage_bytes - result_offset(); }
    [[nodiscard]] bool owns_slice() const { return self_ < chosen_.num_slices; }
    [[nodiscard]] bool is_clean() const { return call_.internode.current().is_clean(); }

    status run_chunk(std::size_t chunk) {
        std::optional<slice_exchange> exchange;
        if (owns_slice()) {
            exchange.emplace(call_,
                             slice_exchange::slice{owners_, result_, slice_of(chunk, self_).count,
                                                   result_ + slice_stride()},
                             chosen_.exchange, chunk % 2);
            reduce_slice(chunk);
            exchange->advance();
        }
        exchange_ = exchange ? &*exchange : nullptr;
        if (chunk > 0) {
            copy_result(chunk - 1);
        }
        if (chunk + 1 < chunks_.num_chunks() && operands_[self_] == nullptr) {
            stage_operand(chunk + 1);
        }
        exchange_ = nullptr;
        if (exchange) {
            exchange->finish();
            stage_result(chunk);
        }
        arrivals_.publish_result();
        arrivals_.wait_for_results();
        return call_.internode.current().outcome();
    }

    void reduce_slice(std::size_t chunk) const {
        range const slice = slice_of(chunk, self_);
        if (!is_clean() || slice.count == 0) {
            return;
        }
        std::size_t const in_operand = (chunks_[chunk].begin + slice.begin) * unit();
        std::vector<const std::byte *> operands(local_.size());
        for (std::size_t member = 0; member < local_.size(); ++member) {
            operands[member] =
                operands_[member] != nullptr
                    ? operands_[member] + in_operand
                    : local_.stage_buffer_of(member, chosen_.stage_bytes) + slice.begin * unit();
        }
        std::size_t const block = cache_block_buffer::elements_of(unit());
        for (std::size_t first = 0; first < slice.count; first += block) {
            std::size_t const at = first * unit();
            reduce_in_order(call_.reduce, result_ + at, local_.size(),
                            std::min(block, slice.count - first),
                            [&](std::size_t member) { return operands[member] + at; });
        }
    }

    void stage_operand(std::size_t chunk) {
        range const elements = chunks_[chunk];
        copy_and_poll(local_.next_stage_buffer(chosen_.stage_bytes),
                      call_.src() + elements.begin * unit(), elements.count * unit());
    }
    void stage_result(std::size_t chunk) const {
        rma::copy_cached(local_.next_stage_buffer(chosen_.stage_bytes) + result_offset(), result_,
                         slice_of(chunk, self_).count * unit());
    }
    /// Copies the slices of the last round to the program. Members begin with different ones.
    void copy_result(std::size_t chunk) {
        for (std::size_t step = 0; step < chosen_.num_slices; ++step) {
            std::size_t const index = (self_ + step) % chosen_.num_slices;
            range const slice = slice_of(chunk, index);
            copy_and_poll(call_.dst() + (chunks_[chunk].begin + slice.begin) * unit(),
                          local_.stage_buffer_of(index, chosen_.stage_bytes) + result_offset(),
                          slice.count * unit());
        }
    }
    void copy_and_poll(std::byte *to, const std::byte *from, std::size_t nbytes) {
        for (std::size_t at = 0; at < nbytes; at += bytes_between_polls) {
            rma::copy_cached(to + at, from + at, std::min(bytes_between_polls, nbytes - at));
            since_advance_ += std::min(bytes_between_polls, nbytes - at);
            if (exchange_ != nullptr && since_advance_ >= bytes_between_polls) {
                exchange_->advance();
                since_advance_ = 0;
            }
        }
    }

    two_level_call &call_;
    const allreduce_choice &chosen_;
    group::local_group &local_;
    group::arrival_protocol &arrivals_;
    std::size_t self_; ///< local index
    chunking chunks_;
    std::size_t alignment_;                   ///< of slices, elements
    std::vector<const std::byte *> operands_; ///< [local index] in the arena; null: staged
    std::vector<std::uint32_t> owners_;       ///< [node] of this member's slice
    std::byte *result_ = nullptr;             ///< of this member's slice, then what it receives
    slice_exchange *exchange_ = nullptr;      ///< to be served during copies
    std::size_t since_advance_ = 0;           ///< bytes copied
};

} // namespace

status two_level_sliced_allreduce(two_level_call &call, const allreduce_choice &chosen) {
    group::log_protocol("call {}: {} slices, {} between nodes, {} elements at a time",
                        call.internode.current().number(), chosen.num_slices,
                        name_of(chosen.exchange), chosen.chunk_elements);
    return sliced_allreduce(call, chosen).run();
}

} // namespace diomp::coll
