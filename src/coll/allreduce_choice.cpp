// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/allreduce_choice.h"

#include "coll/internal/select.h"
#include "coll/internal/two_level_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <mutex>
#include <vector>

namespace diomp::coll {
namespace {

/// A sliced call must be expected to take less than this part of the other algorithms' time.
constexpr double worthwhile = 0.9;
/// What chunks cost beyond the model, in messages that a member waits for, since the slowest member
/// of all nodes delays each exchange: of each chunk after the first, and of all if exchanges
/// overlap. Found on 1024 simulated ranks, 64 KiB to 1 MiB (docs/simulation.md).
constexpr double messages_per_chunk = 4;
constexpr double messages_of_overlap = 8;
/// The part of an exchange's time in the network that is lost too where there are several: messages
/// of rounds that are not at the same step share links.
constexpr double delay_by_shared_links = 0.2;
/// A slice may travel whole, with the state of the call.
constexpr std::size_t max_slice_bytes = group::arrival_protocol::max_data_with_state_bytes;

/// Chunks of a sliced call; the last one may be smaller.
struct chunk_sizes {
    std::size_t num = 1;
    double bytes = 0;
    double last_bytes = 0;
};

/// Expected times, us.
class model {
public:
    explicit model(const allreduce_shape &shape)
        : costs_(shape.costs), nodes_(shape.num_nodes), local_(shape.max_local),
          equal_(shape.min_local == shape.max_local),
          bytes_(static_cast<double>(shape.count * shape.unit_bytes)),
          round_us_(costs_.node_round_us(shape.max_local)) {}

    [[nodiscard]] double leaders_us() const {
        auto const m = static_cast<double>(local_);
        if (bytes_ * m <= leader_operands_max_bytes && bytes_ <= max_slice_bytes) {
            return 2 * round_us_ + copies_us(2) + combines_us(m) + rounds() * message_us(bytes_);
        }
        double const agreement_us = 2 * round_us_ + rounds() * costs_.message_us();
        if (bytes_ < scatter_between_nodes_min_bytes) {
            return agreement_us + 3 * round_us_ + copies_us(4) + combines_us(1) +
                   rounds() * message_us(bytes_);
        }
        bool const has_large_slices = equal_ && bytes_ / m >= static_cast<double>(min_slice_bytes);
        return agreement_us + 3 * round_us_ + copies_us(has_large_slices ? 2 : 4) + combines_us(1) +
               exchange_us({.is_direct = true}, bytes_).until_end_us;
    }
    /// S: the operand of a chunk is staged, R: the slice reduced, K: the result copied, C: the
    /// core's part of the messages. X: the exchange takes until its end. Each member does S R K C
    /// for each chunk, and waits for the rest of X where what it does meanwhile is shorter:
    ///   without lag: S at chunk 0, K at the last one, S K between
    ///   with lag: S K of the own period, R S K of the next; K K at the last chunk, of two K
    /// An exchange that sends its operand in parts begins while the last part is reduced.
    [[nodiscard]] double sliced_us(const slicing &how, const chunk_sizes &sizes) const {
        auto const chunks = static_cast<double>(sizes.num);
        chunk_costs const each = costs_of_chunk(how, sizes.bytes);
        chunk_costs const last = costs_of_chunk(how, sizes.last_bytes);
        double const busy_us = (chunks - 1) * each.busy_us + last.busy_us;
        double const shared_links_us =
            sizes.num == 1 ? 0 : chunks * delay_by_shared_links * each.network_us;
        if (!how.has_lag) {
            double const waits_us = sizes.num == 1
                                        ? last.rest_us
                                        : each.waits_for((sizes.num > 2 ? each : last).copy_us) +
                                              (chunks - 2) * each.waits_for(2 * each.copy_us) +
                                              last.waits_for(each.copy_us);
            return (chunks + 1) * round_us_ + busy_us + waits_us +
                   (chunks - 1) * messages_per_chunk * costs_.message_us() + shared_links_us;
        }
        double const period_us = each.busy_us + round_us_;
        double const wait_us = std::max(each.waits_for(period_us + each.copy_us),
                                        std::max(0.0, each.network_us - period_us));
        return (chunks + 2) * round_us_ + busy_us + (chunks - 1) * wait_us +
               last.waits_for((sizes.num > 2 ? 2 : 1) * each.copy_us + round_us_) +
               messages_of_overlap * costs_.message_us() + shared_links_us;
    }

private:
    [[nodiscard]] double rounds() const { return static_cast<double>(std::bit_width(nodes_ - 1)); }
    [[nodiscard]] double copies_us(double times) const { return times * bytes_ * costs_.copy_us; }
    [[nodiscard]] double combines_us(double times) const {
        return times * bytes_ * costs_.combine_us;
    }
    /// A message of all members of a node at the same time, together of `nbytes`.
    [[nodiscard]] double message_us(double nbytes) const {
        return costs_.message_us() + nbytes * costs_.byte_us;
    }
    struct exchange_costs {
        double until_end_us = 0;
        double busy_us = 0;    ///< of it, in the core of a member
        double network_us = 0; ///< of it, in the node's link
        double early_us = 0;   ///< of it, before the last part of the operand is needed
        double early_part = 0; ///< of the operand, that is not the last part
    };
    /// Exchange of `nbytes`, all slices of a node.
    [[nodiscard]] exchange_costs exchange_us(const slicing &how, double nbytes) const {
        auto const n = static_cast<double>(nodes_);
        if (how.is_direct) {
            double const network_us = 2 * nbytes * (n - 1) / n * costs_.byte_us;
            double const busy_us = 2 * (n - 1) * 2 * costs_.overhead_us;
            return {.until_end_us = 2 * costs_.direct_exchange_us(nodes_) + network_us,
                    .busy_us = busy_us,
                    .network_us = network_us,
                    .early_us = network_us / 2,
                    .early_part = (n - 1) / n};
        }
        double const folds = std::has_single_bit(nodes_) ? 0 : 2;
        auto const halvings = static_cast<double>(how.num_halvings);
        auto const all_rounds = static_cast<double>(std::bit_width(std::bit_floor(nodes_)) - 1);
        double const doublings = all_rounds - halvings;
        double const kept = 1 / static_cast<double>(std::size_t{1} << how.num_halvings);
        // Messages that wait for each other.
        double const num = folds + 2 * halvings + doublings;
        double const network_us =
            nbytes * (folds + 2 * (1 - kept) + doublings * kept) * costs_.byte_us;
        bool const has_parts = folds == 0 && how.num_halvings > 0;
        return {.until_end_us = num * costs_.message_us() + network_us,
                .busy_us = num * 2 * costs_.overhead_us,
                .network_us = network_us,
                .early_us = has_parts ? message_us(nbytes / 2) : 0,
                .early_part = 0.5};
    }

    struct chunk_costs {
        double copy_us = 0;    ///< S or K
        double busy_us = 0;    ///< S R K C
        double rest_us = 0;    ///< of X, from the end of R on, without C
        double network_us = 0; ///< of X

        [[nodiscard]] double waits_for(double other_us) const {
            return std::max(0.0, rest_us - other_us);
        }
    };
    [[nodiscard]] chunk_costs costs_of_chunk(const slicing &how, double nbytes) const {
        exchange_costs const exchange = exchange_us(how, nbytes);
        chunk_costs costs;
        costs.copy_us = nbytes * costs_.copy_us;
        costs.busy_us = 2 * costs.copy_us + nbytes * costs_.combine_us + exchange.busy_us;
        costs.rest_us = std::max(
            0.0, exchange.until_end_us - exchange.busy_us -
                     std::min(exchange.early_us, exchange.early_part * nbytes * costs_.combine_us));
        costs.network_us = exchange.network_us;
        return costs;
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

/// The call in chunks of `each` elements or more; without slices if a chunk does not fit.
allreduce_choice in_chunks(const allreduce_shape &shape, std::size_t each) {
    std::size_t const alignment = std::max<std::size_t>(1, cache_line_bytes / shape.unit_bytes);
    std::size_t const chunk = (each + alignment - 1) / alignment * alignment;
    std::size_t const slice = slice_elements(chunk, shape.min_local, alignment) * shape.unit_bytes;
    allreduce_choice made;
    made.stage_bytes = round_up(chunk * shape.unit_bytes) + round_up(slice);
    made.is_sliced = made.stage_bytes <= large_stage_bytes && slice <= max_slice_bytes;
    made.num_slices = shape.min_local;
    made.chunk_elements = chunk;
    return made;
}

chunk_sizes sizes_of(const allreduce_shape &shape, std::size_t chunk_elements) {
    std::size_t const num = (shape.count + chunk_elements - 1) / chunk_elements;
    return {num, static_cast<double>(chunk_elements * shape.unit_bytes),
            static_cast<double>((shape.count - (num - 1) * chunk_elements) * shape.unit_bytes)};
}

/// Sizes of chunks to consider, in elements, for about `num` of them: equal ones, and a last one of
/// two thirds, whose exchange there is less to do beside.
std::vector<std::size_t> chunk_candidates(const allreduce_shape &shape, std::size_t num) {
    std::size_t const equal = (shape.count + num - 1) / num;
    return num == 1 ? std::vector{equal}
                    : std::vector{equal, (3 * shape.count + 3 * num - 2) / (3 * num - 1)};
}

/// All to consider, or the one that tests force.
std::vector<slicing> candidates_of(const allreduce_shape &shape) {
    auto const rounds =
        static_cast<std::size_t>(std::bit_width(std::bit_floor(shape.num_nodes))) - 1;
    std::vector<slicing> candidates;
    if (shape.slicing.forced) {
        slicing forced = *shape.slicing.forced;
        forced.num_halvings = std::min(rounds, forced.num_halvings);
        return {forced};
    }
    for (bool const has_lag : {false, true}) {
        for (std::size_t halvings = 0; halvings <= rounds; ++halvings) {
            candidates.push_back({.num_halvings = halvings, .has_lag = has_lag});
        }
        candidates.push_back({.is_direct = true, .has_lag = has_lag});
    }
    return candidates;
}

/// What is expected to take least: without slices if the leaders' algorithms do.
allreduce_choice find_best(const allreduce_shape &shape) {
    allreduce_choice best;
    const slicing_options &allowed = shape.slicing;
    std::size_t const nbytes = shape.count * shape.unit_bytes;
    constexpr std::size_t max_chunk_factor = 8;
    std::size_t const chunk_bytes = std::min(large_stage_bytes, allowed.max_chunk_bytes);
    std::size_t const fewest = (nbytes + chunk_bytes - 1) / chunk_bytes;
    model const expected(shape);
    double least_us = allowed.always || allowed.forced ? std::numeric_limits<double>::infinity()
                                                       : worthwhile * expected.leaders_us();
    std::vector<slicing> const candidates = candidates_of(shape);
    for (std::size_t more = 1; more <= max_chunk_factor; more *= 2) {
        // A chunk and its slice take more than the chunk.
        for (std::size_t const chunks : {fewest * more, fewest * more + fewest / 8 + 1}) {
            for (std::size_t const each : chunk_candidates(shape, chunks)) {
                allreduce_choice const fitting = in_chunks(shape, each);
                if (!fitting.is_sliced) {
                    continue;
                }
                chunk_sizes const sizes = sizes_of(shape, fitting.chunk_elements);
                for (const slicing &how : candidates) {
                    if (how.has_lag && sizes.num == 1 && !allowed.forced) {
                        continue; // nothing overlaps
                    }
                    double const us = expected.sliced_us(how, sizes);
                    if (us < least_us) {
                        best = fitting;
                        best.how = how;
                        least_us = us;
                    }
                }
            }
        }
    }
    return best;
}

/// Programs repeat few calls, and a choice takes 3 us (Sapphire Rapids). One for all threads:
/// static storage of threads is limited.
class recent_choices {
public:
    allreduce_choice find(const allreduce_shape &shape) {
        std::unique_lock const lock(mutex_, std::try_to_lock);
        if (!lock) {
            return find_best(shape);
        }
        for (const entry &each : entries_) {
            if (each.shape == shape) {
                return each.choice;
            }
        }
        entry &oldest = entries_[next_++ % entries_.size()];
        oldest = {shape, find_best(shape)};
        return oldest.choice;
    }

private:
    /// At first an empty call, whose choice is right.
    struct entry {
        allreduce_shape shape;
        allreduce_choice choice;
    };
    std::mutex mutex_;
    std::array<entry, 8> entries_{};
    std::size_t next_ = 0;
};

} // namespace

allreduce_choice choose_allreduce(const allreduce_shape &shape) {
    const slicing_options &allowed = shape.slicing;
    std::size_t const nbytes = shape.count * shape.unit_bytes;
    std::size_t const min_members =
        allowed.always ? 2 : std::max<std::size_t>(2, allowed.min_members);
    if (shape.num_nodes < 2 || shape.min_local < min_members ||
        nbytes <= (allowed.forced ? 0 : sync::node_barrier::max_inline_bytes)) {
        return {};
    }
    static recent_choices recent;
    return recent.find(shape);
}

} // namespace diomp::coll
