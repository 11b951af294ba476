// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/node_barrier.h"

#include "base/sanitizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace diomp::sync {
namespace {

/// A flag slot is prefetched this many rounds before it is written.
constexpr std::uint64_t slots_ahead = 8;

/// Different sequences of calls have different digests, except for one in 2^64.
std::uint64_t extend(std::uint64_t digest, const call_signature &call) {
    std::uint64_t const call_bits =
        static_cast<std::uint64_t>(call.what) << 32 | static_cast<std::uint32_t>(call.root);
    std::uint64_t const mixed = (digest ^ call_bits) * 0x9e3779b97f4a7c15U;
    return mixed ^ mixed >> 29U;
}

/// Copies what the caller has just written, word by word.
template <typename Words>
void copy(Words &to, const Words &from) {
    static_assert(sizeof(Words) % sizeof(std::uint64_t) == 0);
    copy_words(reinterpret_cast<std::uint64_t *>(&to),
               reinterpret_cast<const std::uint64_t *>(&from),
               sizeof(Words) / sizeof(std::uint64_t));
}

} // namespace

node_barrier::node_barrier(messaging::engine &engine, std::span<std::byte *const> areas,
                           std::span<const world_rank> members, group_rank self)
    : engine_(engine), members_(members.begin(), members.end()), self_(self.index()) {
    areas_.reserve(areas.size());
    for (std::byte *const each : areas) {
        areas_.push_back(reinterpret_cast<area *>(each));
    }
}

// The flag slot of epoch e is overwritten at e + num_flag_slots, and its payload and inline data
// one round earlier. A member that may still read it has not arrived in e + 1, so the writer must
// know that all have arrived in e + 1. It checks only if its knowledge does not suffice, and then
// waits for fewer rounds than it could: the check is what costs.
status node_barrier::begin_round(const call_signature &call, const round_payload &payload,
                                 std::span<const std::byte> inline_data, bool is_arrive_only) {
    std::uint64_t const epoch = epoch_ + 1;
    if (epoch + 1 >= known_arrived_ + num_flag_slots) [[unlikely]] {
        DIOMP_TRY(wait_arrivals(epoch - num_flag_slots / 2));
        note_all_arrived(epoch - num_flag_slots / 2);
    }
    if (has_unpublished_result_) [[unlikely]] {
        DIOMP_TRY(poll_all_arrived());
    }
    epoch_ = epoch;
    copy(own_call_, call);
    copy(own_payload_, payload);
    area &mine = *areas_[self_];
    if (!inline_data.empty()) {
        std::memcpy(mine.inline_data[epoch % num_flag_slots], inline_data.data(),
                    inline_data.size());
    }
    digest_ = extend(digest_, call);
    mine.digests[epoch % num_flag_slots].store(digest_, std::memory_order_relaxed);
    flag_slot &own = mine.flag_slots[slot_position(epoch)];
    copy(own.call, call);
    copy(own.payload, payload);
    tsan_release_external();
    own.epoch.store(epoch, std::memory_order_release);
    // A member in arrive() is ahead of its readers and needs cache lines faster than they come from
    // another core one by one. In a full round one line is enough, and a prefetch without ownership
    // does not delay the others' lines.
    const flag_slot &later = mine.flag_slots[slot_position(epoch + slots_ahead)];
    if (is_arrive_only) {
        prefetch_for_writing(&later);
    } else {
        __builtin_prefetch(&later);
    }
    touch_slot(mine, epoch + 1, inline_data.size());
    return {};
}

// The other members' caches have these lines, which they read a ring ago. A store gets them back
// while this round lasts; a prefetch for writing takes longer.
void node_barrier::touch_slot(area &mine, std::uint64_t epoch, std::size_t num_inline_bytes) {
    auto const touch = [](void *word) { *static_cast<volatile std::uint64_t *>(word) = 0; };
    touch(&mine.flag_slots[slot_position(epoch)].payload.back());
    for (std::size_t at = 0; at < num_inline_bytes; at += cache_line_bytes) {
        touch(mine.inline_data[epoch % num_flag_slots] + at);
    }
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
        return mismatch(0, differing, epoch_);
    }
    return late_mismatch_ ? take_late_mismatch() : status{};
}

status node_barrier::arrive(const call_signature &call, const round_payload &payload,
                            std::span<const std::byte> inline_data) {
    DIOMP_TRY(begin_round(call, payload, inline_data, true));
    wake_sleepers();
    return late_mismatch_ ? take_late_mismatch() : status{};
}

void node_barrier::wake_members() {
    for (world_rank const member : members_) {
        engine_.wake_for_store(member);
    }
}

// All members have arrived in `epoch`, so every flag slot up to it has been written.
void node_barrier::note_all_arrived(std::uint64_t epoch) {
    if (epoch > known_arrived_) {
        if (compares_arrivals_) {
            compare_arrivals(epoch);
        }
        known_arrived_ = epoch;
    }
}

/// True also if the member has overwritten the digest, being a ring ahead.
bool node_barrier::has_same_history(std::size_t member, std::uint64_t epoch) const {
    return areas_[member]->digests[epoch % num_flag_slots].load(std::memory_order_acquire) ==
               areas_[self_]->digests[epoch % num_flag_slots].load(std::memory_order_relaxed) ||
           has_arrived(member, epoch + num_flag_slots - 1);
}

// The calls of arrive() were compared only between members that wait for each other. If the members
// agree about the operation and its root, a member that has to wait for one that differs has
// detected it. If they do not, perhaps none has: two members that both take themselves for the root
// wait for no other. So the digests are compared now, and if they differ, as they do for ever after
// a mismatch, all flag slots since the last check. A member that is a ring ahead may have
// overwritten a flag slot: then it has checked itself.
void node_barrier::compare_arrivals(std::uint64_t epoch) {
    bool is_same = true;
    for (std::size_t member = 0; member < areas_.size(); ++member) {
        is_same = is_same && (member == self_ || has_same_history(member, epoch));
    }
    if (is_same) [[likely]] {
        return;
    }
    for (std::uint64_t past = known_arrived_ + 1; past <= epoch && !late_mismatch_; ++past) {
        for (std::size_t member = 0; member < areas_.size() && past != reported_; ++member) {
            call_signature const theirs = flag_slot_of(member, past).call;
            call_signature const &own = flag_slot_of(self_, past).call;
            // Read the call first, then check that it was still the call of `past`: the owner
            // rewrites the flag slot only after it has arrived in the round before.
            std::atomic_thread_fence(std::memory_order_acquire);
            bool const is_intact =
                flag_slot_of(member, past).epoch.load(std::memory_order_relaxed) == past &&
                !has_arrived(member, past + num_flag_slots - 1);
            if (is_intact && (theirs.what != own.what || theirs.root != own.root)) {
                late_mismatch_ = mismatch(std::min(member, self_), std::max(member, self_), past);
                break;
            }
        }
    }
}

status node_barrier::take_late_mismatch() {
    error taken = std::move(*late_mismatch_);
    late_mismatch_.reset();
    return taken;
}

status node_barrier::wait_for(group_rank member) {
    std::size_t const index = member.index();
    // The awaited member may be ahead; if it is not, the line is fetched again when it is needed.
    __builtin_prefetch(&flag_slot_of(index, epoch_ + 2));
    DIOMP_TRY(engine_.wait([this, index] { return has_arrived(index, epoch_); },
                           [this] { return describe_missing(epoch_); }));
    return check_call_of(index);
}

status node_barrier::check_call_of(std::size_t member) {
    if (!(flag_slot_of(member, epoch_).call == own_call_)) [[unlikely]] {
        reported_ = epoch_;
        return mismatch(std::min(member, self_), std::max(member, self_), epoch_);
    }
    return {};
}

// Different calls or rounds have equal tags in one of 2^64 cases, as with the digests.
std::uint64_t node_barrier::tag_of(const call_signature &call) const {
    struct words {
        std::uint64_t low, high;
    };
    auto const [low, high] = std::bit_cast<words>(call);
    std::uint64_t const mixed = (low + epoch_ * 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
    return (mixed ^ mixed >> 31U) + high * 0x94d049bb133111ebU;
}

status node_barrier::short_arrive(const call_signature &call, std::uint64_t word) {
    DIOMP_TRY(begin_round(call, {word}, {}, true));
    short_slot &own = areas_[self_]->short_slots[short_slot_position(epoch_)];
    own.word = word;
    own.tag.store(tag_of(call), std::memory_order_release);
    if (epoch_ % short_slots_per_line == 0) {
        prefetch_for_writing(&short_slot_at(self_, epoch_ + 2 * short_slots_per_line));
    }
    wake_sleepers();
    return late_mismatch_ ? take_late_mismatch() : status{};
}

// A member that made another call, or has checks that this one has not, did not use short_arrive:
// its flag slot shows that, checked from time to time.
status node_barrier::wait_for_short(group_rank member) {
    constexpr unsigned polls_per_flag_slot = 16;
    std::size_t const index = member.index();
    const short_slot &awaited = short_slot_at(index, epoch_);
    awaited_tag_ = tag_of(own_call_);
    if (epoch_ % short_slots_per_line == 0) {
        __builtin_prefetch(&short_slot_at(index, epoch_ + 2 * short_slots_per_line));
    }
    unsigned num_polls = 0;
    bool by_flag_slot = false;
    DIOMP_TRY(engine_.wait(
        [&] {
            if (awaited.tag.load(std::memory_order_acquire) == awaited_tag_) [[likely]] {
                return true;
            }
            by_flag_slot = ++num_polls % polls_per_flag_slot == 0 && has_arrived(index, epoch_);
            return by_flag_slot;
        },
        [this] { return describe_missing(epoch_); }));
    return by_flag_slot ? check_call_of(index) : status{};
}

status node_barrier::wait_round(std::size_t &differing) {
    if (areas_.size() <= flat_limit) {
        DIOMP_TRY(wait_arrivals(epoch_));
        differing = find_differing();
        return {};
    }
    if (self_ != 0) {
        engine_.wake_for_store(members_[0]);
        return wait_result(epoch_, differing);
    }
    has_unpublished_result_ = true;
    DIOMP_TRY(wait_arrivals(epoch_));
    differing = find_differing();
    publish_result(differing);
    return {};
}

void node_barrier::publish_result(std::size_t differing) {
    round_result &result = areas_[0]->results[epoch_ % 2];
    result.differing = differing;
    result.epoch.store(epoch_, std::memory_order_release);
    has_unpublished_result_ = false;
    wake_sleepers();
}

status node_barrier::poll_all_arrived() {
    DIOMP_TRY(wait_arrivals(epoch_));
    note_all_arrived(epoch_);
    if (has_unpublished_result_) {
        publish_result(find_differing());
    }
    return {};
}

// A read before the other member has written takes the line away from it, and it must get it back
// first. So do not read at once: the others are likely to arrive at this moment.
status node_barrier::wait_arrivals(std::uint64_t epoch) {
    cpu_relax();
    std::size_t next = 0;
    return engine_.wait(
        [this, epoch, &next] {
            while (next < areas_.size() && (next == self_ || has_arrived(next, epoch))) {
                ++next;
            }
            return next == areas_.size();
        },
        [this, epoch] { return describe_missing(epoch); });
}

status node_barrier::wait_result(std::uint64_t epoch, std::size_t &differing) {
    const round_result &result = areas_[0]->results[epoch % 2];
    DIOMP_TRY(engine_.wait(
        [&result, epoch] { return result.epoch.load(std::memory_order_acquire) >= epoch; },
        [this, epoch] { return describe_missing(epoch); }));
    differing = result.differing;
    return {};
}

std::size_t node_barrier::find_differing() const {
    bool all_equal = true;
    for (std::size_t member = 0; member < areas_.size(); ++member) {
        all_equal =
            all_equal && (member == self_ || flag_slot_of(member, epoch_).call == own_call_);
    }
    for (std::size_t member = 1; !all_equal && member < areas_.size(); ++member) {
        if (!(flag_slot_of(member, epoch_).call == flag_slot_of(0, epoch_).call)) {
            return member;
        }
    }
    return 0;
}

error node_barrier::mismatch(std::size_t one, std::size_t other, std::uint64_t epoch) const {
    return mismatch_error(members_[one], flag_slot_of(one, epoch).call, members_[other],
                          flag_slot_of(other, epoch).call);
}

std::string node_barrier::describe_missing(std::uint64_t epoch) const {
    std::string missing;
    int count = 0;
    for (std::size_t member = 0; member < areas_.size(); ++member) {
        if (!has_arrived(member, epoch)) {
            missing += fmt::format("{}{}", count == 0 ? "" : ", ", members_[member].value());
            ++count;
        }
    }
    // If no member is missing, the last one has arrived after the timeout.
    std::string const awaited = count > 0 ? (count > 1 ? "ranks " : "rank ") + missing
                                : areas_.size() > flat_limit
                                    ? "rank 0 to publish that all ranks have arrived"
                                    : "ranks that arrived late";
    return fmt::format("waiting for {} in {}", awaited, describe(flag_slot_of(self_, epoch).call));
}

} // namespace diomp::sync
