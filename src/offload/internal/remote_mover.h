// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "offload/sides.h"
#include "rma/path.h"

#include <span>

namespace diomp::rma {
class transfers;
}

namespace diomp::offload {

class device_segments;

/// Transfers with memory of a remote device on at least one side. Between two devices the session
/// of the own one copies; between a device and memory that this process can load, this process; to
/// and from host memory of other ranks the data passes through this process. Thread-safe; blocks.
class remote_mover {
public:
    remote_mover(const device_segments &segments, rma::transfers &transfers)
        : segments_(segments), transfers_(transfers) {}

    /// Errors: OMPX_ERR_UNSUPPORTED with a GPU on the other side; OMPX_ERR_PEER if a device is
    /// lost.
    result<rma::path> move(rma::direction dir, world_rank rank, const remote_side &there,
                           const local_side &here, std::span<const rma::run> runs);

private:
    status move_to_host(rma::direction dir, world_rank rank, const memory::location &there,
                        const local_side &here, std::span<const rma::run> runs);

    const device_segments &segments_;
    rma::transfers &transfers_;
};

} // namespace diomp::offload
