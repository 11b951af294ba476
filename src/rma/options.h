// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a rank's transfers are constructed with.
#pragma once

#include "rma/copy.h"
#include "rma/path.h"
#include "transport/types.h"

#include <chrono>
#include <functional>

namespace diomp::rma {

/// Called for a transfer that outlived its call, when this rank finds it complete. Called by any
/// polling thread; must not block.
using transfer_observer = std::function<void(direction dir, world_rank peer, std::size_t nbytes,
                                             std::chrono::steady_clock::time_point begin)>;

struct options {
    world_rank self;
    int num_ranks = 1;
    std::size_t stream_threshold_bytes = auto_threshold;
    transfer_observer on_transfer_complete; ///< for the trace; empty: no trace
};

} // namespace diomp::rma
