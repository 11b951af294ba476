// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The key-value space of one node's ranks: gathers what they put until all of them are in the
// fence, and makes the packets that release them. No input or output here.
#pragma once

#include "launch/local/protocol.h"

#include <memory>
#include <vector>

namespace diomp::run {

/// One packet, shared by the queues of all ranks.
using shared_packet = std::shared_ptr<const std::string>;

class exchange {
public:
    /// Ranks `first` to `first + ranks - 1`.
    exchange(int first, int ranks)
        : first_(first), in_fence_(static_cast<std::size_t>(ranks), false) {}

    void add(std::vector<launch::local::entry> entries);
    /// `rank` enters the fence; true if all are in it now. An error if it is in it already.
    result<bool> enter_fence(int rank);
    /// What has been put since the last call, when all are in the fence; the next fence may begin.
    std::vector<launch::local::entry> take_entries();

private:
    int first_;
    std::vector<launch::local::entry> fresh_; ///< put since the last fence was completed
    std::vector<bool> in_fence_;              ///< [rank - first_]
    std::size_t waiting_ = 0;                 ///< ranks in the fence
};

/// The packets that bring `entries` to a rank and release it. `forget`: what it has got from other
/// nodes may have changed.
std::vector<shared_packet> release_packets(const std::vector<launch::local::entry> &entries,
                                           bool forget);

} // namespace diomp::run
