// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/node_barrier.h"

#include "base/assert.h"
#include "base/sanitizer.h"
#include "messaging/engine.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace diomp::sync {
namespace {

/// A flag slot is prefetched this many rounds before it is written.
constexpr std::uint64_t slots_ahead = 8;

/// Copies what the caller has just written, word by word.
template <typename Words>
void copy(Words &to, const Words &from) {
    static_assert(sizeof(Words) % sizeof(std::uint64_t) == 0);
    copy_words(reinterpret_cast<std::uint64_t *>(&to),
               reinterpret_cast<const std::uint64_t *>(&from),
               sizeof(Words) / sizeof(std::uint64_t));
}

// Different calls or rounds have equal tags in one of 2^64 cases, as with the digests.
std::uint64_t tag_of(const call_signature &call, std::uint64_t epoch) {
    struct words {
        std::uint64_t low, high;
    };
    auto const [low, high] = std::bit_cast<words>(call);
    std::uint64_t const mixed = (low + epoch * 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
    return (mixed ^ mixed >> 31U) + high * 0x94d049bb133111ebU;
}

/// The lowest member whose call in a round, which all have made, differs from that of member 0; 0:
/// none. A member does not read its own flag slot.
std::size_t find_differing(const barrier_areas &areas, std::uint64_t epoch,
                           const call_signature &own) {
    auto const call_of = [&](std::size_t member) -> const call_signature & {
        return areas[member].flag_slot_of(epoch).call;
    };
    bool all_equal = true;
    for (std::size_t member = 0; member < areas.size(); ++member) {
        all_equal = all_equal && (member == areas.self() || call_of(member) == own);
    }
    for (std::size_t member = 1; !all_equal && member < areas.size(); ++member) {
        if (!(call_of(member) == call_of(0))) {
            return member;
        }
    }
    return 0;
}

} // namespace

template <typename Ready>
status node_barrier::wait(Ready &&ready, std::uint64_t epoch) {
    bool is_over = false;
    status waited = engine_.wait(
        [&] {
            is_over = ready();
            return is_over || restart_.is_given_up(epoch_);
        },
        [this, epoch] { return areas_.describe_missing(epoch); });
    if (waited && !restart_.must_give_up(is_over, epoch_)) [[likely]] {
        return waited;
    }
    if (waited) {
        waited = restart_.given_up_error(epoch_);
    }
    restart_.note_failure(waited.failure().code());
    return waited;
}

status node_barrier::restart_round(const call_signature &call) {
    std::uint64_t const before = epoch_;
    DIOMP_TRY(restart_.begin_round(call, epoch_));
    if (epoch_ != before) {
        known_arrived_ = epoch_;
        has_unpublished_result_ = false;
        detector_.restart(epoch_);
    }
    return {};
}

// The flag slot of epoch e is overwritten at e + num_flag_slots, and its payload and inline data
// one round earlier. A member that may still read it has not arrived in e + 1, so the writer must
// know that all have arrived in e + 1. It checks only if its knowledge does not suffice, and then
// waits for fewer rounds than it could: the check is what costs.
status node_barrier::begin_round(const call_signature &call, const round_payload &payload,
                                 std::span<const std::byte> inline_data, bool is_arrive_only) {
    if (!restart_.count_round()) {
        DIOMP_TRY(restart_round(call));
    }
    std::uint64_t const epoch = epoch_ + 1;
    if (epoch + 1 >= known_arrived_ + num_flag_slots) [[unlikely]] {
        if (status arrived = wait_arrivals(epoch - num_flag_slots / 2); !arrived) {
            restart_.leave_step(); // the others make the round
            return arrived;
        }
        note_all_arrived(epoch - num_flag_slots / 2);
    }
    if (has_unpublished_result_) [[unlikely]] {
        if (status arrived = poll_all_arrived(); !arrived) {
            restart_.leave_step();
            return arrived;
        }
    }
    DIOMP_ASSERT(inline_data.size() <= max_inline_bytes, "inline data fits in its flag slot");
    DIOMP_ASSERT(known_arrived_ < epoch && epoch + 1 < known_arrived_ + num_flag_slots,
                 "no member still reads the flag slot of this round");
    DIOMP_ASSERT(areas_.own().flag_slot_of(epoch).epoch.load(std::memory_order_relaxed) < epoch,
                 "rounds are numbered in order");
    epoch_ = epoch;
    copy(own_call_, call);
    copy(own_payload_, payload);
    barrier_area &mine = areas_.own();
    if (!inline_data.empty()) {
        std::memcpy(mine.inline_data_of(epoch), inline_data.data(), inline_data.size());
    }
    detector_.add_call(mine, epoch, call);
    barrier_area::flag_slot &own = mine.flag_slot_of(epoch);
    copy(own.call, call);
    copy(own.payload, payload);
    tsan_release_external();
    own.epoch.store(epoch, std::memory_order_release);
    // A member in arrive() is ahead of its readers and needs cache lines faster than they come from
    // another core one by one. In a full round one line is enough, and a prefetch without ownership
    // does not delay the others' lines.
    const barrier_area::flag_slot &later = mine.flag_slot_of(epoch + slots_ahead);
    if (is_arrive_only) {
        prefetch_for_writing(&later);
    } else {
        __builtin_prefetch(&later);
    }
    mine.touch(epoch + 1, inline_data.size());
    return {};
}

status node_barrier::arrive_and_wait(const call_signature &call, const round_payload &payload,
                                     std::span<const std::byte> inline_data) {
    DIOMP_TRY(begin_round(call, payload, inline_data, false));
    std::size_t differing = 0;
    DIOMP_TRY(wait_round(differing));
    tsan_acquire_external();
    note_all_arrived(epoch_ - 1);
    known_arrived_ = epoch_;
    wake_sleepers(); // they need not check before all have arrived
    if (differing != 0) [[unlikely]] {
        return areas_.mismatch(0, differing, epoch_);
    }
    return {};
}

status node_barrier::arrive(const call_signature &call, const round_payload &payload,
                            std::span<const std::byte> inline_data) {
    DIOMP_TRY(begin_round(call, payload, inline_data, true));
    wake_sleepers();
    return {};
}

void node_barrier::wake_sleepers() {
    if (engine_.needs_wake()) [[unlikely]] {
        sync::wake_members(engine_, areas_);
    }
}

void node_barrier::note_all_arrived(std::uint64_t epoch) {
    DIOMP_ASSERT(epoch <= epoch_, "no member is known to have arrived in a later round");
    if (epoch > known_arrived_) {
        detector_.compare(areas_, known_arrived_, epoch);
        known_arrived_ = epoch;
    }
}

status node_barrier::wait_for(std::size_t member) {
    // The awaited member may be ahead; if it is not, the line is fetched again when it is needed.
    __builtin_prefetch(&areas_[member].flag_slot_of(epoch_ + 2));
    DIOMP_TRY(wait([this, member] { return has_arrived(member, epoch_); }, epoch_));
    return check_call_of(member);
}

status node_barrier::check_call_of(std::size_t member) {
    if (!(call_of(member) == own_call_)) [[unlikely]] {
        detector_.note_reported(epoch_);
        return areas_.mismatch(std::min(member, areas_.self()), std::max(member, areas_.self()),
                               epoch_);
    }
    return {};
}

status node_barrier::short_arrive(const call_signature &call, std::uint64_t word) {
    DIOMP_TRY(begin_round(call, {word}, {}, true));
    barrier_area::short_slot &own = areas_.own().short_slot_of(epoch_);
    own.word = word;
    own.tag.store(tag_of(call, epoch_), std::memory_order_release);
    if (epoch_ % barrier_area::short_slots_per_line == 0) {
        prefetch_for_writing(
            &areas_.own().short_slot_of(epoch_ + 2 * barrier_area::short_slots_per_line));
    }
    wake_sleepers();
    return {};
}

// A member that made another call, or has checks that this one has not, did not use short_arrive:
// its flag slot shows that, checked from time to time.
status node_barrier::wait_for_short(std::size_t member) {
    constexpr unsigned polls_per_flag_slot = 16;
    const barrier_area::short_slot &awaited = areas_[member].short_slot_of(epoch_);
    awaited_tag_ = tag_of(own_call_, epoch_);
    if (epoch_ % barrier_area::short_slots_per_line == 0) {
        __builtin_prefetch(
            &areas_[member].short_slot_of(epoch_ + 2 * barrier_area::short_slots_per_line));
    }
    unsigned num_polls = 0;
    bool by_flag_slot = false;
    DIOMP_TRY(wait(
        [&] {
            if (awaited.tag.load(std::memory_order_acquire) == awaited_tag_) [[likely]] {
                return true;
            }
            by_flag_slot = ++num_polls % polls_per_flag_slot == 0 && has_arrived(member, epoch_);
            return by_flag_slot;
        },
        epoch_));
    return by_flag_slot ? check_call_of(member) : status{};
}

status node_barrier::wait_round(std::size_t &differing) {
    if (areas_.is_flat()) {
        DIOMP_TRY(wait_arrivals(epoch_));
        differing = find_differing(areas_, epoch_, own_call_);
        return {};
    }
    if (areas_.self() != 0) {
        engine_.wake_for_store(areas_.members()[0]);
        const barrier_area::round_result &result = areas_[0].results[epoch_ % 2];
        DIOMP_TRY(
            wait([&] { return result.epoch.load(std::memory_order_acquire) >= epoch_; }, epoch_));
        differing = result.differing;
        return {};
    }
    has_unpublished_result_ = true;
    DIOMP_TRY(wait_arrivals(epoch_));
    differing = find_differing(areas_, epoch_, own_call_);
    publish_result(differing);
    return {};
}

void node_barrier::publish_result(std::size_t differing) {
    DIOMP_ASSERT(areas_.self() == 0, "member 0 publishes results");
    barrier_area::round_result &result = areas_[0].results[epoch_ % 2];
    result.differing = differing;
    result.epoch.store(epoch_, std::memory_order_release);
    has_unpublished_result_ = false;
    wake_sleepers();
}

status node_barrier::poll_all_arrived() {
    if (restart_.is_restarting()) [[unlikely]] {
        return restart_round(own_call_);
    }
    DIOMP_TRY(wait_arrivals(epoch_));
    note_all_arrived(epoch_);
    if (has_unpublished_result_) {
        publish_result(find_differing(areas_, epoch_, own_call_));
    }
    return {};
}

// A read before the other member has written takes the line away from it, and it must get it back
// first. So do not read at once: the others are likely to arrive at this moment.
status node_barrier::wait_arrivals(std::uint64_t epoch) {
    cpu_relax();
    std::size_t next = 0;
    return wait(
        [this, epoch, &next] {
            while (next < areas_.size() && (next == areas_.self() || has_arrived(next, epoch))) {
                ++next;
            }
            return next == areas_.size();
        },
        epoch);
}

} // namespace diomp::sync
