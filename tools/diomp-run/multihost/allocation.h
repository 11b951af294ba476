// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hosts that a batch system has allocated to the job in which diomp-run runs.
#pragma once

#include "host_list.h"

#include <optional>

namespace diomp::run {

struct allocation {
    std::vector<host_slots> hosts; ///< all with slots
    std::string remote_shell;      ///< the batch system's own; empty: it has none
};

/// Reads the allocation from the variables that Slurm (SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE; in
/// a step that srun has started those of the step) or PBS (PBS_NODEFILE) has set; none outside of
/// their jobs. A variable or file that cannot be read is an error.
result<std::optional<allocation>> find_allocation();

/// Returns whether the only host of the allocation is this machine.
[[nodiscard]] bool is_only_here(const allocation &given);

/// Expands Slurm's lists of hosts, as in "login,node[1-3,07],r[0-1]n[1-2]".
result<std::vector<std::string>> expand_slurm_hosts(std::string_view list);
/// Expands Slurm's lists of numbers per host, as in "4(x2),3".
result<std::vector<int>> expand_slurm_counts(std::string_view list);

} // namespace diomp::run
