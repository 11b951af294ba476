// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Block exchange between any members with blocks of any size: gather, scatter, allgather and
// alltoall of endpoints, and all v forms.
//
// On a node each rank writes a table of its outgoing blocks into its stage buffer: each block's
// address in the arena, or its position in the stream that goes through the stage buffers. After
// that round the readers copy the blocks from the arena, and from one stage buffer after another.
//
//   little data                 table and data in one stage buffer   1 round
//   blocks in the arena         table | copies                       2
//   others                      table and data | data | ...          1 + data / stage buffer
//
// Between nodes the ranks send the blocks as messages after the agreement, directly from and into
// the program's memory.
#pragma once

#include "coll/internal/members.h"

#include <cstddef>
#include <optional>
#include <span>

namespace diomp::coll {

/// The blocks that a call exchanges, as far as one rank can compute them.
class block_plan {
public:
    explicit block_plan(const member_call &call) : call_(call) {}

    /// The block from the rank's member `index` to another member; nullopt: none.
    [[nodiscard]] std::optional<std::span<const std::byte>> outgoing(std::size_t index,
                                                                     std::size_t to) const;
    /// The destination of the block from another member; nullopt: none.
    [[nodiscard]] std::optional<std::span<std::byte>> incoming(std::size_t index,
                                                               std::size_t from) const;
    /// Whether each member sends one block to all its receivers.
    [[nodiscard]] bool same_for_all() const;
    /// Whether a rank sends any block.
    [[nodiscard]] bool sends(std::size_t rank) const;

private:
    const member_call &call_;
};

} // namespace diomp::coll
