// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the members of a collective from device to device tell each other before it: where their
// buffers lie in their segments, and of a v form the blocks that others reach for.
//
// A rank's part lies in its stage: told_buffers [place], of a v form told_block [place][member]
// too.
#pragma once

#include "collective/collective.h"
#include "group/group.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace diomp::runtime {

/// Of one endpoint.
struct told_buffers {
    std::uint64_t dst = 0; ///< in the segment
    std::uint64_t src = 0;
    std::uint64_t dst_bytes = 0; ///< 0: not used
    std::uint64_t src_bytes = 0;
    std::int32_t device = 0; ///< the owner's number
    std::uint32_t is_fit = 0;
};

/// The block for a member: of an alltoallv and a scatterv in src, else in dst.
struct told_block {
    std::uint64_t nbytes = 0;
    std::uint64_t before = 0; ///< bytes, in the buffer
};

/// What a call's members have told.
class told_call {
public:
    /// Whether a rank's part fits into its stage. The same on all members.
    static bool has_room(const group::group &members, const collective::request &asked);
    /// An own part; `lists` [place], none if the call is no v form.
    static std::vector<std::byte> pack(std::span<const told_buffers> own,
                                       std::span<const collective::block_lists *const> lists);
    /// All parts, after the meeting.
    told_call(group::group &members, const collective::request &asked);

    [[nodiscard]] std::span<const told_buffers> all() const { return all_; } ///< [member]
    [[nodiscard]] bool all_fit() const;
    /// Of a v form: what member `of` has or wants for member `with`.
    [[nodiscard]] const told_block &block(std::size_t of, std::size_t with) const {
        return blocks_[of * all_.size() + with];
    }
    /// Of a v form.
    [[nodiscard]] std::size_t largest_block() const;

private:
    std::vector<told_buffers> all_;
    std::vector<told_block> blocks_; ///< [member][member]
};

} // namespace diomp::runtime
