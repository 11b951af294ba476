// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An allreduce in which every member of a node owns a slice, with the agreement in its messages.
//
// Rounds of the node barrier alternate with periods in which a member does its part of several
// chunks. In period p, of a call without lag:
//
//   reduce slice p, begin its exchange; copy result p - 1 to the program; stage operand p + 1;
//   complete exchange p and stage its result | round
//
// With a lag of one period, which pays where an exchange takes longer than the copies beside it,
// exchange p is completed in period p + 1, after slice p + 1 has been reduced, and result p copied
// in period p + 2. Exchanges that have begun are served during reductions and copies.
//
// An exchange begins before its slice is reduced, and sends each part of it as soon as it is there.
//
// Members read an operand in the arena where it lies; others go through the stage buffers. The
// first two rounds are the arrivals of the call, and nothing is written to the program's memory
// before the round after exchange 0: by then each member has the state of all members. A failure
// that an exchange has found is thus known to all nodes in the same period. A member whose call
// has failed otherwise completes exchange 0 or, of a later one, sends what is left.
#include "coll/internal/slice_exchange.h"
#include "coll/internal/two_level_blocks.h"
#include "group/protocol_log.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
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
            std::size_t const each = round_up(
                slice_stride() + slice_exchange::received_bytes(chosen_.how, call.num_nodes(),
                                                                slice_stride(), call.unit_bytes));
            results_ = {call.internode.channel().scratch(num_open() * each), num_open() * each};
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
        for (std::size_t period = 0; period < chunks_.num_chunks() + lag(); ++period) {
            DIOMP_TRY(run_period(period));
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
    /// Periods between the begin of an exchange and its end.
    [[nodiscard]] std::size_t lag() const { return chosen_.how.has_lag ? 1 : 0; }
    [[nodiscard]] std::size_t num_open() const { return 1 + lag(); }
    [[nodiscard]] std::optional<slice_exchange> &exchange_of(std::size_t chunk) {
        return exchanges_[chunk % num_open()];
    }
    /// The own slice of a chunk, combined so far; what is received follows it.
    [[nodiscard]] std::byte *result_of(std::size_t chunk) const {
        return results_.data() + chunk % num_open() * (results_.size() / num_open());
    }
    [[nodiscard]] bool is_clean() const { return call_.internode.current().is_clean(); }

    status run_period(std::size_t period) {
        if (period < chunks_.num_chunks()) {
            begin_exchange(period);
        }
        if (period > lag()) {
            copy_result(period - 1 - lag());
        }
        if (period + 1 < chunks_.num_chunks() && operands_[self_] == nullptr) {
            stage_operand(period + 1);
        }
        if (period >= lag()) {
            complete_exchange(period - lag());
        }
        if (!is_clean()) {
            give_up(period);
        }
        arrivals_.publish_result();
        arrivals_.wait_for_results();
        return call_.internode.current().outcome();
    }

    void begin_exchange(std::size_t chunk) {
        if (!owns_slice()) {
            return;
        }
        slice_exchange &exchange = exchange_of(chunk).emplace(
            call_,
            slice_exchange::slice{owners_, result_of(chunk), slice_of(chunk, self_).count,
                                  result_of(chunk) + slice_stride()},
            chosen_.how, chunk);
        for (range const part : exchange.parts()) {
            reduce_slice(chunk, part);
            exchange.add_part();
        }
        serve();
    }
    void complete_exchange(std::size_t chunk) {
        if (exchange_of(chunk)) {
            exchange_of(chunk)->finish();
            exchange_of(chunk).reset();
            stage_result(chunk);
        }
    }
    /// All members have begun exchange 0 or will, so that all learn of the failure there.
    void give_up(std::size_t period) {
        for (auto &open : exchanges_) {
            if (open && period == 0) {
                open->finish();
            } else if (open) {
                open->abandon();
            }
        }
    }
    /// The one of several that began first may have an odd or an even number.
    void serve() {
        for (auto &open : exchanges_) {
            if (open) {
                open->advance();
            }
        }
    }

    /// Combines a part of the own slice from the operands of the node.
    void reduce_slice(std::size_t chunk, range part) {
        if (!is_clean() || part.count == 0) {
            return;
        }
        std::size_t const in_chunk = (slice_of(chunk, self_).begin + part.begin) * unit();
        std::size_t const in_operand = chunks_[chunk].begin * unit() + in_chunk;
        std::byte *const result = result_of(chunk) + part.begin * unit();
        std::vector<const std::byte *> operands(local_.size());
        for (std::size_t member = 0; member < local_.size(); ++member) {
            operands[member] = operands_[member] != nullptr
                                   ? operands_[member] + in_operand
                                   : local_.stage_buffer_of(member, chosen_.stage_bytes) + in_chunk;
        }
        std::size_t const block = cache_block_buffer::elements_of(unit());
        for (std::size_t first = 0; first < part.count; first += block) {
            std::size_t const at = first * unit();
            std::size_t const count = std::min(block, part.count - first);
            reduce_in_order(call_.reduce, result + at, local_.size(), count,
                            [&](std::size_t member) {
                                serve_after(count * unit());
                                return operands[member] + at;
                            });
        }
    }

    void stage_operand(std::size_t chunk) {
        range const elements = chunks_[chunk];
        copy_and_poll(local_.next_stage_buffer(chosen_.stage_bytes),
                      call_.src() + elements.begin * unit(), elements.count * unit());
    }
    void stage_result(std::size_t chunk) const {
        rma::copy_cached(local_.next_stage_buffer(chosen_.stage_bytes) + result_offset(),
                         result_of(chunk), slice_of(chunk, self_).count * unit());
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
            std::size_t const n = std::min(bytes_between_polls, nbytes - at);
            rma::copy_cached(to + at, from + at, n);
            serve_after(n);
        }
    }
    void serve_after(std::size_t nbytes) {
        since_serve_ += nbytes;
        if (since_serve_ >= bytes_between_polls) {
            serve();
            since_serve_ = 0;
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
    std::span<std::byte> results_;            ///< num_open() times result_of()
    std::array<std::optional<slice_exchange>, 2> exchanges_; ///< open ones
    std::size_t since_serve_ = 0;                            ///< bytes copied or combined
};

} // namespace

status two_level_sliced_allreduce(two_level_call &call, const allreduce_choice &chosen) {
    group::log_protocol(
        "call {}: {} slices, {} between nodes ({} rounds halve), {} elements at a time{}",
        call.internode.current().number(), chosen.num_slices,
        chosen.how.is_direct ? "directly" : "in rounds", chosen.how.num_halvings,
        chosen.chunk_elements, chosen.how.has_lag ? ", exchanges overlap" : "");
    return sliced_allreduce(call, chosen).run();
}

} // namespace diomp::coll
