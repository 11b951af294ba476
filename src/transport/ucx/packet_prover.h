// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Authentication of UCX messages. UCX does not tell a receiver which endpoint sent a message, and
// any process that knows a worker's address can send one. Every message therefore carries a number
// that only ranks of the job can compute.
#pragma once

#include "base/ids.h"
#include "base/secure/secret.h"

#include <cstdint>

namespace diomp::transport::ucx {

/// Computes the proofs of endpoints from the job's secret. Any thread.
class packet_prover {
public:
    explicit packet_prover(secure::secret job) : job_(std::move(job)) {}

    /// The number that all messages of an endpoint carry: `endpoint` (a worker) of rank `source`
    /// to rank `target`. It reveals nothing about the secret or other endpoints. About 2 us.
    [[nodiscard]] std::uint64_t proof_of(world_rank source, std::uint16_t endpoint,
                                         world_rank target) const;

private:
    secure::secret job_;
};

} // namespace diomp::transport::ucx
