// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared memory for some ranks, a network for the others, chosen per peer at creation.
#pragma once

#include "conduit/network.h"

#include <vector>

namespace diomp::conduit {

/// `is_near[world rank]`: reached through `near`, which also does the sleeping and waking for both;
/// the network's doorbell must call its wake(). All others are reached through `far`.
std::unique_ptr<conduit> compose(std::unique_ptr<conduit> near, std::unique_ptr<network> far,
                                 std::vector<bool> is_near);

} // namespace diomp::conduit
