// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the ranks of a node take for their part of a call, where one rank stands for all ranks of
// its node.
//
// The ranks' arrivals: the leader sees the last store after flag_s and reads one line for each of
// the others. The result: a store that all of them read, one line after the other. Copies run at
// copy_bandwidth in each core, all at the same time, as SMPI's messages on a node do; neither side
// is charged for the memory that its cores share, nor for the arithmetic of reductions.
#pragma once

#include "machine.h"

#include <cstddef>
#include <string>

namespace diomp::simulation {

/// Seconds before the leaders' first message, and after their last one.
struct node_work {
    double before_s = 0;
    double after_s = 0;
};

/// `nbytes`: per call (bcast, allreduce) or per block (allgather). `all_ranks`: those of
/// each node are simulated one by one; the library's own copies are charged then
/// (charged_copies.h), except those of an alltoall, which are too small for that.
node_work work_of(const machine &hardware, const std::string &collective, std::size_t nbytes,
                  bool all_ranks);

} // namespace diomp::simulation
