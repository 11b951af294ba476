// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers with another rank's accelerator, for memory that cannot be opened here (another node,
// or no device IPC), go through host memory, and the owner takes part. For a put, the requester
// copies a chunk into a buffer in its own host segment and sends its address to the owner, whose
// bounce thread fetches the chunk and copies it to the device. A get runs the other way round.
// Several chunks are in flight at a time, so that device copies overlap with the network. With each
// chunk of a box, the owner gets a list of the runs' destinations.
#pragma once

#include "messaging/call.h"
#include "rma/rma.h"

#include <cstdint>

namespace diomp::offload {

struct bounce_request {
    messaging::request_header header;
    std::uint64_t address = 0; ///< device address, as the owner sees it
    std::uint64_t staging = 0; ///< chunk in the requester's slot, as a global address
    std::uint32_t nbytes = 0;
    std::uint32_t num_runs = 0; ///< 0: contiguous; otherwise a list of runs precedes the data
    std::int32_t device = 0;
    rma::direction dir = rma::direction::put;
};

struct bounce_reply {
    std::int32_t failure = 0;
};

/// An entry of the list that precedes the data in a chunk.
struct listed_run {
    std::uint64_t offset = 0; ///< offset from the beginning of the array on the device
    std::uint64_t nbytes = 0;
};

} // namespace diomp::offload
