// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The meeting of a group's members in memory that all of them can load and store: a barrier that
// carries a call signature and 40 bytes from each member to all others.
//
// Glossary: meeting: one use, counted by the epoch. area: a member's cache lines, in its own slot.
// line: epoch, signature and payload of one member for one meeting; a ring of them, so that a
// member may be some meetings ahead of one that still reads. full meeting: everybody waits for
// everybody. post: a meeting in which each member waits only for those whose payload it needs.
// brief word: eight bytes of a post that are all that its readers look at.
//
// A member does not read its own line: the first reader may have taken it away (processors with
// migratory lines do), and between cores that are far apart getting it back costs as much as the
// meeting. And it begins to write its next line while it waits, so that the line is there in time.
//
// Lines that follow each other do not lie side by side: where they do, the processors of those who
// read fetch ahead, and take away lines that are about to be written.
//
// Up to flat_limit members everybody polls everybody's line: one cache line travels between each
// pair, one step. Above that member 0 polls all lines and announces the result in its own area: two
// steps, 2 (n - 1) lines.
#pragma once

#include "base/cpu.h"
#include "base/ids.h"
#include "base/result.h"
#include "conduit/engine.h"
#include "sync/call_signature.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp::sync {

/// What a member tells the others, five words of its own choice.
using meeting_payload = std::array<std::uint64_t, 5>;

/// One per member and group, used by one thread at a time. The areas must be zeroed before any
/// member meets, and outlive the object.
class rendezvous {
public:
    static constexpr std::size_t flat_limit = 16;
    /// Lines per member. A member that only posts looks up every num_lines / 2 meetings.
    static constexpr std::size_t num_lines = 128;
    /// Data that may travel beside a line, for what does not fit into the payload.
    static constexpr std::size_t wide_bytes = 256;
    /// Bytes and alignment (a cache line) of a member's area.
    static constexpr std::size_t area_bytes =
        (num_lines + 2) * cache_line_bytes + num_lines * (wide_bytes + 3 * sizeof(std::uint64_t));

    /// areas and members: [group rank]. `self` is the caller's place in them.
    rendezvous(conduit::engine &engine, std::span<std::byte *const> areas,
               std::span<const world_rank> members, group_rank self);

    [[nodiscard]] std::size_t num_members() const { return areas_.size(); }

    /// Blocks until every member has entered the meeting; what they wrote before is then visible
    /// here. Members that made different calls all get the same OMPX_ERR_MISMATCH, and meet again
    /// next time as if nothing had happened. After OMPX_ERR_TIMEOUT or OMPX_ERR_PEER the call
    /// counts as made: members that come late still meet.
    status meet(const call_signature &call) { return meet(call, meeting_payload{}); }
    /// `wide`, up to wide_bytes, is brought along if it is not empty.
    status meet(const call_signature &call, const meeting_payload &payload,
                std::span<const std::byte> wide = {});

    /// Enters a meeting without waiting for it (except for members that are num_lines behind).
    status post(const call_signature &call, const meeting_payload &payload,
                std::span<const std::byte> wide = {});
    /// After post: waits for one member. OMPX_ERR_MISMATCH if that one made another call. Members
    /// that do not wait for each other notice at their next full meeting, or when they look up:
    /// that call is made, and then reports the earlier one.
    status await(group_rank member);
    /// The same with a brief word, which is also the first of the payload, for members that expect
    /// it by await_brief. Four calls share a line, and who waits looks at no other as a rule:
    /// between cores that are far apart a line takes as long as several calls.
    status post_brief(const call_signature &call, std::uint64_t word);
    status await_brief(group_rank member);
    /// The member's word of the last meeting, after await_brief; valid until the caller's next one.
    [[nodiscard]] const std::byte *brief_of(group_rank member) const {
        const brief &told = brief_at(member.index(), epoch_);
        bool const is_there = told.tag.load(std::memory_order_acquire) == awaited_tag_;
        return reinterpret_cast<const std::byte *>(is_there ? &told.word
                                                            : payload_of(member).data());
    }
    /// For callers that wait and compare by themselves, after post: whether the member has entered
    /// the last meeting.
    [[nodiscard]] bool has_entered(group_rank member) const {
        return has_entered(member.index(), epoch_);
    }
    /// The same of an earlier one, not more than num_lines before.
    [[nodiscard]] bool has_entered(group_rank member, std::uint64_t epoch) const {
        return has_entered(member.index(), epoch);
    }
    /// The call with which it has.
    [[nodiscard]] const call_signature &call_of(group_rank member) const {
        return line_of(member.index(), epoch_).call;
    }
    /// Posts are compared by the caller from now on, who knows also about other nodes.
    void leave_comparing_to_caller() { compares_posts_ = false; }

    /// Meetings entered so far, the same on all members between calls.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    /// Waits until all have entered the last meeting; at once after a full one.
    status settle() { return known_entered_ == epoch_ ? status{} : settle_slowly(); }

    /// A member's payload of the last meeting; valid until the caller's next one.
    [[nodiscard]] const meeting_payload &payload_of(group_rank member) const {
        return member.index() == self_ ? own_payload_ : line_of(member.index(), epoch_).payload;
    }
    /// Its wide data, likewise; aligned to a cache line. Of the caller's own, what it gave is
    /// quicker to read.
    [[nodiscard]] const std::byte *wide_of(group_rank member) const {
        return areas_[member.index()]->wide[epoch_ % num_lines];
    }

private:
    struct alignas(cache_line_bytes) line {
        std::atomic<std::uint64_t> epoch;
        call_signature call;
        meeting_payload payload;
    };
    /// What others need to know of a post with one word: the tag tells the meeting and the call.
    struct brief {
        std::atomic<std::uint64_t> tag;
        std::uint64_t word;
    };
    static constexpr std::size_t briefs_per_line = cache_line_bytes / sizeof(brief);
    struct alignas(cache_line_bytes) announcement {
        std::atomic<std::uint64_t> epoch;
        std::uint64_t differing; ///< member whose call differs from member 0's; 0: none
    };
    struct area {
        line lines[num_lines];
        announcement announced[2]; ///< of full meetings, by member 0, in large groups
        brief briefs[num_lines];
        std::byte wide[num_lines][wide_bytes];
        /// Of operation and root of all calls up to that of the line.
        std::atomic<std::uint64_t> digests[num_lines];
    };
    static_assert(sizeof(line) == cache_line_bytes && sizeof(area) == area_bytes);

    /// Of a meeting's line and wide data.
    static std::size_t place_of(std::uint64_t epoch);
    /// Those of a line follow each other, the lines do not.
    static std::size_t place_of_brief(std::uint64_t epoch);
    [[nodiscard]] std::uint64_t tag_of(const call_signature &call) const;
    [[nodiscard]] const brief &brief_at(std::size_t member, std::uint64_t epoch) const {
        return areas_[member]->briefs[place_of_brief(epoch)];
    }
    [[nodiscard]] const line &line_of(std::size_t member, std::uint64_t epoch) const {
        return areas_[member]->lines[place_of(epoch)];
    }
    [[nodiscard]] bool has_entered(std::size_t member, std::uint64_t epoch) const {
        return line_of(member, epoch).epoch.load(std::memory_order_acquire) >= epoch;
    }
    status enter(const call_signature &call, const meeting_payload &payload,
                 std::span<const std::byte> wide, bool posts);
    static void begin_to_write(area &mine, std::uint64_t epoch, std::size_t nbytes_wide);
    /// After a store that members may wait for.
    void wake_sleepers() {
        if (engine_.have_to_wake()) [[unlikely]] {
            wake_members();
        }
    }
    void wake_members();
    status settle_slowly();
    /// Waits for the end of the full meeting that this member has entered last.
    status complete(std::size_t &differing);
    void announce(std::size_t differing);
    void all_entered(std::uint64_t epoch);
    [[nodiscard]] bool has_same_history(std::size_t member, std::uint64_t epoch) const;
    void compare_posts(std::uint64_t epoch);
    /// The disagreement about an earlier call that was found meanwhile, if any.
    status late_report();
    status compare_with(std::size_t member);
    status await_all(std::uint64_t epoch);
    status await_announcement(std::uint64_t epoch, std::size_t &differing);
    [[nodiscard]] std::size_t find_differing() const;
    [[nodiscard]] error mismatch(std::size_t one, std::size_t other, std::uint64_t epoch) const;
    [[nodiscard]] std::string describe_missing(std::uint64_t epoch) const;

    conduit::engine &engine_;
    std::vector<area *> areas_;
    std::vector<world_rank> members_;
    std::size_t self_;
    std::uint64_t epoch_ = 0;
    call_signature own_call_; ///< as in the own line of the last meeting
    meeting_payload own_payload_{};
    std::uint64_t digest_ = 0;        ///< as in the area
    std::uint64_t known_entered_ = 0; ///< every member has entered this meeting
    std::uint64_t awaited_tag_ = 0;   ///< of the last await_brief
    std::uint64_t reported_ = 0;      ///< the last meeting whose mismatch await told
    std::optional<error> late_;       ///< of an earlier post
    bool compares_posts_ = true;
    bool unannounced_ = false; ///< member 0 owes the others the end of the last meeting
};

/// The bits of their number in reverse order: no distance that a processor would recognise.
inline constexpr auto places_of_lines = [] {
    std::array<std::uint8_t, rendezvous::num_lines> places{};
    for (std::size_t i = 0; i < places.size(); ++i) {
        for (std::size_t bit = 1; bit < places.size(); bit *= 2) {
            places[i] = static_cast<std::uint8_t>(places[i] * 2 + ((i & bit) != 0 ? 1 : 0));
        }
    }
    return places;
}();

inline std::size_t rendezvous::place_of(std::uint64_t epoch) {
    return places_of_lines[epoch % num_lines];
}

inline std::size_t rendezvous::place_of_brief(std::uint64_t epoch) {
    // Of the bits that are reversed the lower ones are those of the line: none of it is lost.
    std::uint64_t const line = epoch / briefs_per_line;
    return places_of_lines[line * briefs_per_line % num_lines] * briefs_per_line +
           epoch % briefs_per_line;
}

} // namespace diomp::sync
