// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packages, NUMA nodes and cores of this machine, and which cores diomp-run would give to ranks.
//
// Glossary: cpu: what the system schedules on (a hardware thread). core: the cpus that share one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace diomp::info {

struct package {
    int number = 0;
    std::string model; ///< empty: not known
};
struct numa_node {
    int number = 0;
    std::size_t memory_bytes = 0;
    std::vector<int> cpus;
};
struct core {
    int package = -1;
    int numa_node = -1; ///< -1: not known
    std::vector<int> cpus;
    bool is_usable = true; ///< this process may run there
};
struct node_layout {
    std::vector<package> packages;
    std::vector<numa_node> numa_nodes;
    std::vector<core> cores; ///< by their first cpu
};

/// Empty where hwloc finds nothing.
node_layout look_at_node();

struct rank_cores {
    std::vector<int> cpus; ///< empty: unbound
    int numa_node = -1;    ///< of all its cores; -1: of several, or not known
};
/// As diomp-run binds without --bind-to: block by block, unbound where ranks outnumber cores.
std::vector<rank_cores> bind_ranks(const node_layout &node, int ranks);

/// {0, 1, 2, 5} -> "0-2,5".
std::string format_numbers(const std::vector<int> &numbers);

} // namespace diomp::info
