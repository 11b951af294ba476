// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One collective call of all ranks, timed: ours, and SMPI's.
#pragma once

#include "job.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace diomp::simulation {

struct trial {
    std::string collective; ///< barrier, bcast, allreduce, allgather or alltoall
    std::size_t nbytes = 0; ///< of the call, or of each block in allgather and alltoall
};

struct measured {
    double seconds = 0;             ///< from the first rank's call to the last one's return
    std::uint64_t max_messages = 0; ///< that a simulated rank sent
    std::uint64_t max_bytes = 0;
    std::uint64_t all_messages = 0;
};

using result_sink = std::function<void(const trial &, const measured &)>;

/// Runs the trials with the library, each `repeats` times after one that is not timed; calls `sink`
/// with the last. `verifies`: with buffers of their own and a comparison of the results, which
/// moves all data. Throws std::runtime_error if a call fails or a result is wrong.
void measure_diomp(job &ranks, const std::vector<trial> &trials, int repeats, bool verifies,
                   const result_sink &sink);

/// The same with SMPI's collectives. No data is moved. `hosts`: [node]. Call SMPI_init before.
void measure_smpi(const machine &hardware, std::vector<simgrid::s4u::Host *> hosts,
                  const std::vector<trial> &trials, int repeats, const result_sink &sink);

} // namespace diomp::simulation
