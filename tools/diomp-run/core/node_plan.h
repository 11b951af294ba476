// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a node starts: which ranks, where, and which program.
#pragma once

#include "cpu_layout.h"
#include "options.h"
#include "rank_environment.h"
#include "spawn.h"

#include <string>
#include <vector>

namespace diomp::run {

struct node_plan {
    int first_rank = 0;
    int ranks = 0;
    int world_size = 0;
    std::string job_id;
    std::string host;
    std::vector<cpu_list> placement;         ///< [rank - first_rank]
    std::vector<std::string> remote_devices; ///< [rank - first_rank] DIOMP_REMOTE_DEVICES, or empty
    spawn_request common; ///< program, arguments, environment, signal mask and limits of all ranks
};

/// Completes a plan that has the ranks, their devices and the command line: finds the program,
/// checks that it can use the devices, assigns cores, and makes the environment from this process's
/// and `settings`. On failure `exit_status` is set where diomp-run's exit status is not 1.
status complete_plan(node_plan &plan, const std::string &search_path, binding bind,
                     const named_settings &settings, int &exit_status);

} // namespace diomp::run
