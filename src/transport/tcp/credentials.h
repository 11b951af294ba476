// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Authentication of a job's ranks for their connections.
#pragma once

#include "base/secure/handshake.h"
#include "launch/launch.h"

namespace diomp::transport::tcp {

/// The job's secret, and what this rank says in handshakes.
class credentials {
public:
    credentials(const launch::job_info &job, bool encrypts)
        : own_rank_(job.rank), num_ranks_(static_cast<std::uint32_t>(job.size)),
          encrypts_(encrypts), secret_(secure::secret::random()) {}

    /// Collective. Takes the secret of rank 0, which the launcher distributes.
    status share(launch::launcher &launcher);
    /// The side that connects to `peer`.
    [[nodiscard]] secure::handshake initiate(world_rank peer) const;
    /// The side that has accepted, from any rank.
    [[nodiscard]] secure::handshake respond() const;

private:
    [[nodiscard]] secure::handshake_options options() const;

    world_rank own_rank_;
    std::uint32_t num_ranks_;
    bool encrypts_;
    secure::secret secret_;
};

} // namespace diomp::transport::tcp
