// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packages, NUMA nodes and cores of this machine, and the cores to which diomp-run would bind
// ranks.
//
// Glossary: cpu: a hardware thread, the unit that the system schedules on. core: the cpus that
// share a processor core.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace diomp::info {

struct package {
    int number = 0;
    std::string model; ///< empty: unknown
};
struct numa_node {
    int number = 0;
    std::size_t memory_bytes = 0;
    std::vector<int> cpus;
};
struct core {
    int package = -1;
    int numa_node = -1; ///< -1: unknown
    std::vector<int> cpus;
    bool is_usable = true; ///< this process may run on the core
};
struct node_layout {
    std::vector<package> packages;
    std::vector<numa_node> numa_nodes;
    std::vector<core> cores; ///< sorted by their first cpu
};

/// Reads the layout with hwloc; empty if hwloc finds nothing.
node_layout read_node_layout();

struct rank_cores {
    std::vector<int> cpus; ///< empty: unbound
    int numa_node = -1;    ///< of all its cores; -1: several nodes, or unknown
};
/// Binds ranks as diomp-run does without --bind-to: in blocks, unbound with more ranks than cores.
std::vector<rank_cores> bind_ranks(const node_layout &node, int ranks);

/// Formats {0, 1, 2, 5} as "0-2,5".
std::string format_numbers(const std::vector<int> &numbers);

} // namespace diomp::info
