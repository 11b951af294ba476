// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/allreduce_choice.h"

#include "coll/internal/network_costs.h"
#include "coll/internal/select.h"
#include "coll/internal/two_level_blocks.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace diomp::coll {
namespace {

/// A sliced call must be expected to take less than this part of the other algorithms' time.
constexpr double worthwhile = 0.9;
/// A slice may travel whole, with the state of the call.
constexpr std::size_t max_slice_bytes = group::arrival_protocol::max_data_with_state_bytes;

/// Expected times, us.
class model {
public:
    explicit model(const allreduce_shape &shape)
        : nodes_(shape.num_nodes), local_(shape.max_local),
          equal_(shape.min_local == shape.max_local),
          bytes_(static_cast<double>(shape.count * shape.unit_bytes)),
          round_us_(costs_.node_round_us(shape.max_local)) {}

    [[nodiscard]] double leaders_us() const {
        auto const m = static_cast<double>(local_);
        if (bytes_ * m <= leader_operands_max_bytes && bytes_ <= max_slice_bytes) {
            return 2 * round_us_ + copies_us(m + 2) + rounds() * message_us(bytes_);
        }
        double const agreement_us = 2 * round_us_ + rounds() * costs_.message_us();
        if (bytes_ < scatter_between_nodes_min_bytes) {
            return agreement_us + 3 * round_us_ + copies_us(5) + rounds() * message_us(bytes_);
        }
        bool const has_large_slices = equal_ && bytes_ / m >= static_cast<double>(min_slice_bytes);
        return agreement_us + 3 * round_us_ + copies_us(has_large_slices ? 3 : 5) +
               exchange_us(exchange_method::direct, bytes_);
    }
    [[nodiscard]] double sliced_us(exchange_method method, std::size_t num_chunks) const {
        auto const chunks = static_cast<double>(num_chunks);
        double const copy_us = copies_us(1) / chunks;
        double const between_us = exchange_us(method, bytes_ / chunks);
        double const inner_us = std::max(between_us, 2 * copy_us);
        double const edge_us = std::max(between_us, copy_us);
        double const exchanges_us =
            num_chunks == 1 ? between_us : 2 * edge_us + (chunks - 2) * inner_us;
        return (chunks + 1) * round_us_ + (chunks + 2) * copy_us + exchanges_us;
    }

private:
    [[nodiscard]] double rounds() const { return static_cast<double>(std::bit_width(nodes_ - 1)); }
    [[nodiscard]] double copies_us(double times) const { return times * bytes_ * costs_.copy_us; }
    /// A message of all members of a node at the same time, together of `nbytes`.
    [[nodiscard]] double message_us(double nbytes) const {
        return costs_.message_us() + nbytes * costs_.byte_us;
    }
    [[nodiscard]] double exchange_us(exchange_method method, double nbytes) const {
        auto const n = static_cast<double>(nodes_);
        if (method == exchange_method::direct) {
            return 2 * costs_.direct_exchange_us(nodes_) + message_bytes_us(nbytes, n);
        }
        bool const folds = !std::has_single_bit(nodes_);
        double const fold_us = folds ? 2 * message_us(nbytes) : 0;
        auto const power = static_cast<double>(std::bit_floor(nodes_));
        double const num_rounds = rounds() - (folds ? 1 : 0);
        if (method == exchange_method::doubling) {
            return fold_us + num_rounds * message_us(nbytes);
        }
        return fold_us + 2 * num_rounds * costs_.message_us() + message_bytes_us(nbytes, power);
    }
    /// A reduce-scatter and an allgather among `n` nodes.
    [[nodiscard]] double message_bytes_us(double nbytes, double n) const {
        return 2 * nbytes * (n - 1) / n * costs_.byte_us;
    }

    static constexpr double leader_operands_max_bytes = max_operands_bytes;

    network_costs costs_;
    std::size_t nodes_;
    std::size_t local_;
    bool equal_;
    double bytes_;
    double round_us_;
};

/// Elements of the largest slice of a chunk.
std::size_t slice_elements(std::size_t chunk, std::size_t num_slices, std::size_t alignment) {
    std::size_t const units = (chunk + alignment - 1) / alignment;
    return std::min(chunk, (units + num_slices - 1) / num_slices * alignment);
}

/// The call in `num_chunks` equal chunks; without slices if a chunk does not fit.
allreduce_choice in_chunks(const allreduce_shape &shape, exchange_method method,
                           std::size_t num_chunks) {
    std::size_t const alignment = std::max<std::size_t>(1, cache_line_bytes / shape.unit_bytes);
    std::size_t const each = (shape.count + num_chunks - 1) / num_chunks;
    std::size_t const chunk = (each + alignment - 1) / alignment * alignment;
    std::size_t const slice = slice_elements(chunk, shape.min_local, alignment) * shape.unit_bytes;
    std::size_t const stage_bytes = round_up(chunk * shape.unit_bytes) + round_up(slice);
    bool const fits = stage_bytes <= large_stage_bytes && slice <= max_slice_bytes;
    return {fits, method, shape.min_local, chunk, stage_bytes};
}

} // namespace

const char *name_of(exchange_method method) {
    switch (method) {
    case exchange_method::doubling:
        return "doubling";
    case exchange_method::halving:
        return "halving";
    case exchange_method::direct:
        return "direct";
    }
    return "";
}

allreduce_choice choose_allreduce(const allreduce_shape &shape) {
    allreduce_choice best;
    const slicing_options &slicing = shape.slicing;
    std::size_t const nbytes = shape.count * shape.unit_bytes;
    bool const is_forced = slicing.always || slicing.forced_exchange;
    std::size_t const min_members =
        slicing.always ? 2 : std::max<std::size_t>(2, slicing.min_members);
    if (shape.num_nodes < 2 || shape.min_local < min_members ||
        nbytes <= (slicing.forced_exchange ? 0 : sync::node_barrier::max_inline_bytes)) {
        return best;
    }
    constexpr std::size_t max_chunk_factor = 8;
    std::size_t const chunk_bytes = std::min(large_stage_bytes, slicing.max_chunk_bytes);
    std::size_t const fewest = (nbytes + chunk_bytes - 1) / chunk_bytes;
    model const expected(shape);
    double least_us =
        is_forced ? std::numeric_limits<double>::infinity() : worthwhile * expected.leaders_us();
    for (std::size_t more = 1; more <= max_chunk_factor; more *= 2) {
        // A chunk and its slice take more than the chunk.
        for (std::size_t const chunks : {fewest * more, fewest * more + fewest / 4 + 1}) {
            for (auto const method :
                 {exchange_method::doubling, exchange_method::halving, exchange_method::direct}) {
                allreduce_choice const candidate = in_chunks(shape, method, chunks);
                double const us = expected.sliced_us(method, chunks);
                if (candidate.is_sliced && us < least_us &&
                    slicing.forced_exchange.value_or(method) == method) {
                    best = candidate;
                    least_us = us;
                }
            }
        }
    }
    return best;
}

} // namespace diomp::coll
