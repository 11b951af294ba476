// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sent by the members of a device-to-device collective before it starts: the offsets of their
// buffers in their segments and, for a v variant, the blocks that other members access.
//
// Layout in a rank's stage buffer: buffer_info [own endpoint], followed for a v variant by
// block_info [own endpoint][member].
#pragma once

#include "coll/collective.h"
#include "group/group.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace diomp::device_coll {

/// Buffers of one endpoint.
struct buffer_info {
    std::uint64_t dst = 0; ///< offset in the segment
    std::uint64_t src = 0;
    std::uint64_t dst_bytes = 0; ///< 0: not used
    std::uint64_t src_bytes = 0;
    std::int32_t device = 0; ///< device number at the owner
    std::uint32_t is_eligible = 0;
};

/// The block for one member: in src for alltoallv and scatterv, otherwise in dst.
struct block_info {
    std::uint64_t nbytes = 0;
    std::uint64_t before = 0; ///< byte offset in the buffer
};

/// The information sent by all members of a call.
class call_info {
public:
    /// Whether a rank's information fits into its stage buffer; all members get the same result.
    static bool fits_stage_buffer(const group::group &members, const coll::request &args);
    /// Packs this rank's information; `lists` [own endpoint], empty unless the call is a v variant.
    static std::vector<std::byte> pack(std::span<const buffer_info> own,
                                       std::span<const coll::block_lists *const> lists);
    /// Unpacks all members' information, after the round.
    call_info(group::group &members, const coll::request &args);

    [[nodiscard]] std::span<const buffer_info> all() const { return all_; } ///< [member]
    [[nodiscard]] bool all_fit() const;
    /// For a v variant: the block of member `of` that is for or from member `with`.
    [[nodiscard]] const block_info &block(std::size_t of, std::size_t with) const {
        return blocks_[of * all_.size() + with];
    }
    /// For a v variant: bytes of the largest block.
    [[nodiscard]] std::size_t largest_block() const;

private:
    std::vector<buffer_info> all_;
    std::vector<block_info> blocks_; ///< [member][member]
};

} // namespace diomp::device_coll
