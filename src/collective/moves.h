// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls that move blocks of any size between any members: gather, scatter, allgather and alltoall
// of endpoints, and all v forms.
//
// On a node everybody writes a table of its outgoing blocks into its stage: where each lies in the
// window, or in which part of the stream that goes through the stages. After that meeting readers
// know all; they copy from the window, and from one stage after the other.
//
//   little data                 table and data in one stage      1 meeting
//   blocks in the window        table | copies                   2
//   others                      table and data | data | ...      1 + data / stage
//
// Between nodes, after agreement, ranks send each other the blocks as letters, straight from and
// into the program's memory.
#pragma once

#include "collective/members.h"

#include <cstddef>
#include <optional>
#include <span>

namespace diomp::collective {

/// Which blocks a call moves, as one rank knows it.
class block_plan {
public:
    explicit block_plan(const member_call &call) : call_(call) {}

    /// What the rank's member number `place` has for another member; nullopt: nothing.
    [[nodiscard]] std::optional<std::span<const std::byte>> outgoing(std::size_t place,
                                                                     std::size_t to) const;
    /// Where it wants what comes from another.
    [[nodiscard]] std::optional<std::span<std::byte>> incoming(std::size_t place,
                                                               std::size_t from) const;
    /// A member has the same block for all that get one.
    [[nodiscard]] bool same_for_all() const;
    /// Whether a rank has anything to send.
    [[nodiscard]] bool sends(std::size_t rank) const;

private:
    const member_call &call_;
};

} // namespace diomp::collective
