// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Combines shared memory for some ranks with a network for the others, chosen per peer at creation.
#pragma once

#include "transport/common/network.h"

#include <vector>

namespace diomp::transport {

/// `is_intra_node[world rank]`: the peer is reached through `intra_node`, which also does the
/// sleeping and waking for both conduits; the network's doorbell must call its wake(). All other
/// peers are reached through `inter_node`.
std::unique_ptr<conduit> compose(std::unique_ptr<conduit> intra_node,
                                 std::unique_ptr<network> inter_node,
                                 std::vector<bool> is_intra_node);

} // namespace diomp::transport
