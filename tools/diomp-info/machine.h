// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine's resources for a job: cores, memory, limits.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace diomp::info {

struct machine {
    std::string host;
    std::string kernel;
    int cores = 0; ///< physical
    int hardware_threads = 0;
    int usable_threads = 0; ///< in this process's affinity mask
    int numa_nodes = 0;
    std::size_t memory_bytes = 0;
    std::size_t available_bytes = 0;
    std::optional<double> cpu_quota; ///< CPU time that the control group may use, in cores
    std::optional<std::size_t> memory_limit_bytes; ///< of the control group
};

machine inspect_machine();

/// Returns the first line of a file in /proc or /sys, "" if it cannot be read.
std::string read_line(const std::string &path);
/// Returns the number in such a file; nullopt if there is none ("max").
std::optional<long long> read_number(const std::string &path);

} // namespace diomp::info
