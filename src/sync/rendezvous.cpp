// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/rendezvous.h"

#include "base/sanitizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace diomp::sync {
namespace {

/// So many calls before it is written a line is asked for.
constexpr std::uint64_t lines_ahead = 8;

/// Different sequences of calls have different digests, but for one in 2^64.
std::uint64_t extend(std::uint64_t digest, const call_signature &call) {
    std::uint64_t const news =
        static_cast<std::uint64_t>(call.what) << 32 | static_cast<std::uint32_t>(call.root);
    std::uint64_t const mixed = (digest ^ news) * 0x9e3779b97f4a7c15U;
    return mixed ^ mixed >> 29U;
}

/// What the caller has just written, word by word.
template <typename Words>
void copy(Words &to, const Words &from) {
    static_assert(sizeof(Words) % sizeof(std::uint64_t) == 0);
    copy_words(reinterpret_cast<std::uint64_t *>(&to),
               reinterpret_cast<const std::uint64_t *>(&from),
               sizeof(Words) / sizeof(std::uint64_t));
}

} // namespace

rendezvous::rendezvous(conduit::engine &engine, std::span<std::byte *const> areas,
                       std::span<const world_rank> members, group_rank self)
    : engine_(engine), members_(members.begin(), members.end()), self_(self.index()) {
    areas_.reserve(areas.size());
    for (std::byte *const each : areas) {
        areas_.push_back(reinterpret_cast<area *>(each));
    }
}

// The line of epoch e is overwritten at e + num_lines, and its payload and wide data one meeting
// earlier. Whoever may still read it has not entered e + 1, so the writer must know that all have
// entered e + 1. It looks only when what it knows does not suffice, and then waits for less than it
// could: looking is what costs.
status rendezvous::enter(const call_signature &call, const meeting_payload &payload,
                         std::span<const std::byte> wide, bool posts) {
    std::uint64_t const epoch = epoch_ + 1;
    if (epoch + 1 >= known_entered_ + num_lines) [[unlikely]] {
        DIOMP_TRY(await_all(epoch - num_lines / 2));
        all_entered(epoch - num_lines / 2);
    }
    if (unannounced_) [[unlikely]] {
        DIOMP_TRY(settle_slowly());
    }
    epoch_ = epoch;
    copy(own_call_, call);
    copy(own_payload_, payload);
    area &mine = *areas_[self_];
    if (!wide.empty()) {
        std::memcpy(mine.wide[epoch % num_lines], wide.data(), wide.size());
    }
    digest_ = extend(digest_, call);
    mine.digests[epoch % num_lines].store(digest_, std::memory_order_relaxed);
    line &own = mine.lines[place_of(epoch)];
    copy(own.call, call);
    copy(own.payload, payload);
    order_going_out();
    own.epoch.store(epoch, std::memory_order_release);
    // Who posts is ahead of its readers and needs lines more quickly than they come from another
    // core one by one. In a meeting one is enough, and asked for without the right to write it does
    // not keep the others' lines waiting.
    const line &later = mine.lines[place_of(epoch + lines_ahead)];
    if (posts) {
        prefetch_for_writing(&later);
    } else {
        __builtin_prefetch(&later);
    }
    begin_to_write(mine, epoch + 1, wide.size());
    return {};
}

// The others have these lines, which they read a ring ago. A store gets them back while this
// meeting lasts; prefetching them for writing does so less quickly.
void rendezvous::begin_to_write(area &mine, std::uint64_t epoch, std::size_t nbytes_wide) {
    auto const touch = [](void *word) { *static_cast<volatile std::uint64_t *>(word) = 0; };
    touch(&mine.lines[place_of(epoch)].payload.back());
    for (std::size_t at = 0; at < nbytes_wide; at += cache_line_bytes) {
        touch(mine.wide[epoch % num_lines] + at);
    }
}

status rendezvous::meet(const call_signature &call, const meeting_payload &payload,
                        std::span<const std::byte> wide) {
    DIOMP_TRY(enter(call, payload, wide, false));
    std::size_t differing = 0;
    DIOMP_TRY(complete(differing));
    order_coming_in();
    all_entered(epoch_ - 1);
    known_entered_ = epoch_;
    wake_sleepers(); // they need not look before all have entered
    if (differing != 0) [[unlikely]] {
        return mismatch(0, differing, epoch_);
    }
    return late_ ? late_report() : status{};
}

status rendezvous::post(const call_signature &call, const meeting_payload &payload,
                        std::span<const std::byte> wide) {
    DIOMP_TRY(enter(call, payload, wide, true));
    wake_sleepers();
    return late_ ? late_report() : status{};
}

void rendezvous::wake_members() {
    for (world_rank const member : members_) {
        engine_.wake_for_store(member);
    }
}

// Everybody has entered `epoch`, so every line up to it has been written.
void rendezvous::all_entered(std::uint64_t epoch) {
    if (epoch > known_entered_) {
        if (compares_posts_) {
            compare_posts(epoch);
        }
        known_entered_ = epoch;
    }
}

/// Or has the member overwritten it, being a ring ahead.
bool rendezvous::has_same_history(std::size_t member, std::uint64_t epoch) const {
    return areas_[member]->digests[epoch % num_lines].load(std::memory_order_acquire) ==
               areas_[self_]->digests[epoch % num_lines].load(std::memory_order_relaxed) ||
           has_entered(member, epoch + num_lines - 1);
}

// Posts were compared only with the members that were waited for. If the members agree about the
// operation and its root, whoever has to wait for a member that differs has noticed. If not,
// perhaps nobody has: two members that both take themselves for the root wait for nobody. So the
// digests are compared now, and if they differ, as they do for ever after a mismatch, all lines
// since the last look. A member that is a ring ahead may have overwritten a line: then it has
// looked itself.
void rendezvous::compare_posts(std::uint64_t epoch) {
    bool is_same = true;
    for (std::size_t member = 0; member < areas_.size(); ++member) {
        is_same = is_same && (member == self_ || has_same_history(member, epoch));
    }
    if (is_same) [[likely]] {
        return;
    }
    for (std::uint64_t past = known_entered_ + 1; past <= epoch && !late_; ++past) {
        for (std::size_t member = 0; member < areas_.size() && past != reported_; ++member) {
            call_signature const theirs = line_of(member, past).call;
            call_signature const &own = line_of(self_, past).call;
            // Read the call first, then look whether it was still that of `past`: its owner writes
            // the line again only after it has entered the meeting before.
            std::atomic_thread_fence(std::memory_order_acquire);
            bool const kept = line_of(member, past).epoch.load(std::memory_order_relaxed) == past &&
                              !has_entered(member, past + num_lines - 1);
            if (kept && (theirs.what != own.what || theirs.root != own.root)) {
                late_ = mismatch(std::min(member, self_), std::max(member, self_), past);
                break;
            }
        }
    }
}

status rendezvous::late_report() {
    error told = std::move(*late_);
    late_.reset();
    return told;
}

status rendezvous::await(group_rank member) {
    std::size_t const index = member.index();
    // Who is waited for may be ahead; if it is not, the line is asked for again when it is needed.
    __builtin_prefetch(&line_of(index, epoch_ + 2));
    DIOMP_TRY(engine_.wait([this, index] { return has_entered(index, epoch_); },
                           [this] { return describe_missing(epoch_); }));
    return compare_with(index);
}

status rendezvous::compare_with(std::size_t member) {
    if (!(line_of(member, epoch_).call == own_call_)) [[unlikely]] {
        reported_ = epoch_;
        return mismatch(std::min(member, self_), std::max(member, self_), epoch_);
    }
    return {};
}

// Equal tags of different calls or meetings: one in 2^64, as with the digests.
std::uint64_t rendezvous::tag_of(const call_signature &call) const {
    struct words {
        std::uint64_t low, high;
    };
    auto const [low, high] = std::bit_cast<words>(call);
    std::uint64_t const mixed = (low + epoch_ * 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
    return (mixed ^ mixed >> 31U) + high * 0x94d049bb133111ebU;
}

status rendezvous::post_brief(const call_signature &call, std::uint64_t word) {
    DIOMP_TRY(enter(call, {word}, {}, true));
    brief &own = areas_[self_]->briefs[place_of_brief(epoch_)];
    own.word = word;
    own.tag.store(tag_of(call), std::memory_order_release);
    if (epoch_ % briefs_per_line == 0) {
        prefetch_for_writing(&brief_at(self_, epoch_ + 2 * briefs_per_line));
    }
    wake_sleepers();
    return late_ ? late_report() : status{};
}

// A member that made another call, or checks more than this one, has posted in another way: its
// line tells, looked at now and then.
status rendezvous::await_brief(group_rank member) {
    constexpr unsigned looks_before_line = 16;
    std::size_t const index = member.index();
    const brief &awaited = brief_at(index, epoch_);
    awaited_tag_ = tag_of(own_call_);
    if (epoch_ % briefs_per_line == 0) {
        __builtin_prefetch(&brief_at(index, epoch_ + 2 * briefs_per_line));
    }
    unsigned looks = 0;
    bool by_line = false;
    DIOMP_TRY(engine_.wait(
        [&] {
            if (awaited.tag.load(std::memory_order_acquire) == awaited_tag_) [[likely]] {
                return true;
            }
            by_line = ++looks % looks_before_line == 0 && has_entered(index, epoch_);
            return by_line;
        },
        [this] { return describe_missing(epoch_); }));
    return by_line ? compare_with(index) : status{};
}

status rendezvous::complete(std::size_t &differing) {
    if (areas_.size() <= flat_limit) {
        DIOMP_TRY(await_all(epoch_));
        differing = find_differing();
        return {};
    }
    if (self_ != 0) {
        engine_.wake_for_store(members_[0]);
        return await_announcement(epoch_, differing);
    }
    unannounced_ = true;
    DIOMP_TRY(await_all(epoch_));
    differing = find_differing();
    announce(differing);
    return {};
}

void rendezvous::announce(std::size_t differing) {
    announcement &result = areas_[0]->announced[epoch_ % 2];
    result.differing = differing;
    result.epoch.store(epoch_, std::memory_order_release);
    unannounced_ = false;
    wake_sleepers();
}

status rendezvous::settle_slowly() {
    DIOMP_TRY(await_all(epoch_));
    all_entered(epoch_);
    if (unannounced_) {
        announce(find_differing());
    }
    return {};
}

// A look before the other has written takes the line away from it, and it has to get it back first:
// so not at once, the others are likely to enter at the same time.
status rendezvous::await_all(std::uint64_t epoch) {
    cpu_relax();
    std::size_t next = 0;
    return engine_.wait(
        [this, epoch, &next] {
            while (next < areas_.size() && (next == self_ || has_entered(next, epoch))) {
                ++next;
            }
            return next == areas_.size();
        },
        [this, epoch] { return describe_missing(epoch); });
}

status rendezvous::await_announcement(std::uint64_t epoch, std::size_t &differing) {
    const announcement &result = areas_[0]->announced[epoch % 2];
    DIOMP_TRY(engine_.wait(
        [&result, epoch] { return result.epoch.load(std::memory_order_acquire) >= epoch; },
        [this, epoch] { return describe_missing(epoch); }));
    differing = result.differing;
    return {};
}

std::size_t rendezvous::find_differing() const {
    bool all_equal = true;
    for (std::size_t member = 0; member < areas_.size(); ++member) {
        all_equal = all_equal && (member == self_ || line_of(member, epoch_).call == own_call_);
    }
    for (std::size_t member = 1; !all_equal && member < areas_.size(); ++member) {
        if (!(line_of(member, epoch_).call == line_of(0, epoch_).call)) {
            return member;
        }
    }
    return 0;
}

error rendezvous::mismatch(std::size_t one, std::size_t other, std::uint64_t epoch) const {
    return disagreement(members_[one], line_of(one, epoch).call, members_[other],
                        line_of(other, epoch).call);
}

std::string rendezvous::describe_missing(std::uint64_t epoch) const {
    std::string missing;
    int count = 0;
    for (std::size_t member = 0; member < areas_.size(); ++member) {
        if (!has_entered(member, epoch)) {
            missing += fmt::format("{}{}", count == 0 ? "" : ", ", members_[member].value());
            ++count;
        }
    }
    // With nobody missing, somebody has come since the time was up.
    std::string const awaited = count > 0 ? (count > 1 ? "ranks " : "rank ") + missing
                                : areas_.size() > flat_limit
                                    ? "rank 0 to announce that all have come"
                                    : "ranks that have come too late";
    return fmt::format("waiting for {} in {}", awaited, describe(line_of(self_, epoch).call));
}

} // namespace diomp::sync
