// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The key-value exchange of one node's ranks: collects published values until all of these ranks
// are in the fence, and makes the packets that release them. Does no input or output.
#pragma once

#include "launch/local/protocol.h"

#include <memory>
#include <vector>

namespace diomp::run {

/// One packet, shared by the queues of all ranks.
using shared_packet = std::shared_ptr<const std::string>;

class exchange {
public:
    /// For the ranks `first` to `first + ranks - 1`.
    exchange(int first, int ranks)
        : first_(first), in_fence_(static_cast<std::size_t>(ranks), false) {}

    void add(std::vector<launch::local::entry> entries);
    /// Records that `rank` is in the fence. Returns whether all ranks are; an error if `rank` was
    /// already.
    result<bool> enter_fence(int rank);
    /// Returns the values published since the last call and resets the fence. Call when all ranks
    /// are in it.
    std::vector<launch::local::entry> take_entries();
    /// Returns the ranks that are not in the fence in which others are; none if no rank is.
    [[nodiscard]] std::vector<int> late_ranks() const;
    [[nodiscard]] int ranks() const { return static_cast<int>(in_fence_.size()); }

private:
    int first_;
    std::vector<launch::local::entry> new_entries_; ///< published since the last fence
    std::vector<bool> in_fence_;                    ///< [rank - first_]
    std::size_t waiting_ = 0;                       ///< ranks in the fence
};

/// Makes the packets that bring those of the `entries` that are delivered (launch/local/protocol.h)
/// to the ranks of a node of `ranks`, and release them from the fence. `invalidate`: values that a
/// rank has requested may have changed.
std::vector<shared_packet> release_packets(std::vector<launch::local::entry> entries, int ranks,
                                           bool invalidate);

/// The reply to a request; nullptr: there is no such value.
std::vector<shared_packet> value_packet(const std::string *value);

} // namespace diomp::run
