// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "node_work.h"

#include <algorithm>

namespace diomp::simulation {
namespace {

/// The bytes that one core moves before and after the messages, as src/coll does it.
struct copied {
    double before = 0;
    double after = 0;
};

copied copies_of(const std::string &collective, double nbytes, double num_local, double num_ranks) {
    /// Of more operands each member combines a part (two_level.cpp).
    constexpr double max_operands_bytes = 256 << 10;
    if (collective == "bcast") {
        return {0, nbytes};
    }
    if (collective == "allreduce") {
        return {num_local * nbytes > max_operands_bytes ? 2 * nbytes : num_local * nbytes, nbytes};
    }
    if (collective == "allgather") {
        // The leader collects; it writes the blocks of all into its stage buffers while the others
        // read them.
        return {num_local * nbytes, num_ranks * nbytes};
    }
    if (collective == "alltoall") {
        return {num_ranks * nbytes, num_ranks * nbytes};
    }
    return {};
}

} // namespace

node_work work_of(const machine &hardware, const std::string &collective, std::size_t nbytes,
                  bool all_ranks) {
    int const num_local = hardware.ranks_per_node;
    if (num_local == 1) {
        return {};
    }
    if (all_ranks && collective != "alltoall") {
        return {};
    }
    copied const moved = copies_of(collective, static_cast<double>(nbytes), num_local,
                                   static_cast<double>(hardware.num_ranks()));
    double const barrier_s = all_ranks ? 0 : hardware.round_s();
    return {barrier_s + moved.before / hardware.copy_bandwidth,
            barrier_s + moved.after / hardware.copy_bandwidth};
}

} // namespace diomp::simulation
