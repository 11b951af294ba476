// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The simulated machine: nodes of equal ranks on a fat tree or a dragonfly, and what a rank's own
// work costs.
//
// Between nodes SimGrid's model CM02 without correction factors: a message takes the sum of the
// latencies of its links, then its flow gets the max-min share of each link's bandwidth. Sender and
// receiver are busy for an overhead per message and per byte; SMPI charges its ranks the same
// (smpi/os, smpi/ois, smpi/or). On a node, SMPI's messages take a loopback of `copy_bandwidth` and
// `loopback_latency_s` per flow; ours take node_work.h.
#pragma once

#include <cstddef>
#include <string>

namespace diomp::simulation {

struct machine {
    std::string topology = "fat-tree"; ///< or "dragonfly"
    std::string platform_file;         ///< if not empty, instead of the topology
    int num_nodes = 16;
    int ranks_per_node = 64;
    double link_bandwidth = 12.5e9; ///< bytes per second, each direction
    double link_latency_s = 250e-9; ///< of each link; a fat tree's path has two or four
    double overhead_s = 400e-9;     ///< of sending, and of receiving, a message
    double overhead_s_per_byte = 0; ///< in addition
    double copy_bandwidth = 10e9;   ///< bytes per second that one core copies on a node
    double loopback_latency_s = 200e-9;
    double flag_s = 150e-9; ///< until a store is seen by another core of the node
    double line_s = 30e-9;  ///< a core reads each further line that other cores have written

    [[nodiscard]] int num_ranks() const { return num_nodes * ranks_per_node; }
    /// Until all ranks of a node have seen what one of them has stored, or one has seen what all
    /// others have.
    [[nodiscard]] double round_s() const { return flag_s + (ranks_per_node - 1) * line_s; }
    /// Time in which a core sends or receives a message.
    [[nodiscard]] double overhead_of(std::size_t nbytes) const {
        return overhead_s + overhead_s_per_byte * static_cast<double>(nbytes);
    }
};

/// The platform as SimGrid reads it. It may have a few more nodes than the machine.
std::string platform_xml(const machine &of);

/// SimGrid's settings for the machine, "name:value".
std::string smpi_overhead(const machine &of);

} // namespace diomp::simulation
