// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMPCCL on one node: collective operations over a group whose members load and store each other's
// slots.
//
// Glossary: stage: see group/group.h. chunk: the part of a call that goes through the stages
// between two meetings. part: the share of a chunk that one member reduces for all. direct: the
// buffers lie in the window, so that members read them where they are. Which algorithm runs when:
// select.h.
//
// Guarantees: a reduction combines the operands in rank order, each element once or in the same way
// everywhere, so all members get bitwise the same result. A call that members make differently is
// OMPX_ERR_MISMATCH before any buffer is written: on all members, except that in a call of up to
// 256 bytes with a root only those notice who wait for the one that differs (check_all_members:
// all). A call with an error leaves the group usable.
#pragma once

#include "collective/operators.h"
#include "collective/request.h"
#include "group/group.h"
#include "rma/event.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace diomp::collective {

/// What a call reads and writes at one member, in bytes from the start of each buffer.
struct buffer_use {
    std::size_t src_bytes = 0; ///< 0: not read
    std::size_t dst_bytes = 0; ///< 0: not used
    bool reads_dst = false;    ///< or leaves some of it as it was
};
buffer_use use_of(const request &asked, const endpoint_buffers &buffers, std::size_t num_members,
                  std::size_t member);

struct options {
    std::uintptr_t window_base = 0; ///< addresses in here mean the same memory in every member
    std::size_t window_span = 0;
    [[nodiscard]] bool in_window(const void *buffer) const {
        return reinterpret_cast<std::uintptr_t>(buffer) - window_base < window_span;
    }
    std::size_t stream_threshold_bytes = 0;
    /// A bcast of so much between buffers in the window is shared out: each member writes a part of
    /// all the others' buffers. Smaller blocks stay in the caches of those who will read them. The
    /// largest of the members' counts.
    std::size_t shared_bcast_from_bytes = SIZE_MAX;
    bool oversubscribed = false;      ///< more ranks than cores: few, large steps
    std::size_t stage_room_bytes = 0; ///< of either room of a member's stages, once they are large
    /// Every member waits for all in every call, so that all learn of a mismatch.
    bool check_all_members = false;
};

/// Any thread. One per runtime; holds the user-defined operators.
class collectives {
public:
    explicit collectives(const options &chosen);

    /// Blocks until the caller's part is done and its buffers may be reused. On a group of ranks.
    status run(group::group &members, const request &asked);
    /// Returns at once; the operation runs in its turn on the group's thread. Bad arguments are
    /// told here, all other errors by the event.
    result<ompx_event *> start(group::group &members, const request &asked);

    /// The same for all of the caller's endpoints in the group, in the group's order; the buffers
    /// in `asked` do not count. All memory must be loadable here.
    status run(group::group &members, const request &asked, std::span<const endpoint_buffers> own);
    result<ompx_event *> start(group::group &members, const request &asked,
                               std::vector<endpoint_buffers> own);
    /// Bad arguments, as they tell; for callers that hand the call on to others.
    /// `own` begins with the caller's endpoint number `first`.
    status check(const group::group &members, const request &asked,
                 std::span<const endpoint_buffers> own, std::size_t first = 0) const;

    [[nodiscard]] user_operators &operators() { return operators_; }

    /// The ranks of any group, each once, as a call of its own: for what the runtime tells itself.
    /// With the turn.
    status run_among_ranks(group::group &members, const request &asked);
    /// Meets with what `asked` would be: OMPX_ERR_MISMATCH on all members if they differ. For calls
    /// that somebody else makes. With the turn.
    static status compare(group::group &members, const request &asked);
    /// The same, and members may object. Everybody learns of the lowest one that does.
    static result<std::optional<group::objection>>
    agree(group::group &members, const request &asked, std::optional<std::uint64_t> own_objection);
    /// The same where all members are on one node, and tells: afterwards `members.here()` has
    /// everybody's payload and, up to member_block::small_stage_bytes, what they staged. With the
    /// turn.
    static status meet(group::group &members, const request &asked,
                       const sync::meeting_payload &payload,
                       std::span<const std::byte> staged = {});
    /// As run; the caller has the group's turn. `is_checked`: `check` has found the call right.
    status run_in_turn(group::group &members, const request &asked,
                       std::span<const endpoint_buffers> own, bool is_checked = false);

private:
    status run_common(group::group &members, const request &asked);
    result<reducer> resolve(const request &asked) const;

    options options_;
    user_operators operators_;
};

} // namespace diomp::collective
