// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "node_plan.h"

#include "program.h"
#include "program_regions.h"

#include <unistd.h>

namespace diomp::run {

status complete_plan(node_plan &plan, const std::string &search_path, binding bind,
                     const named_settings &settings, int &exit_status) {
    program_lookup const program = find_program(plan.common.arguments.front(), search_path);
    if (program.exit_status != 0) {
        exit_status = program.exit_status;
        return error(OMPX_ERR_ARG, program.message);
    }
    if (auto usable = plan.remote_devices.empty() ? status() : check_remote_regions(program.path);
        !usable) {
        exit_status = status_usage;
        return usable;
    }
    auto placement = assign_cores(plan.ranks, bind, group_by_core(allowed_cpus(), read_siblings));
    if (!placement) {
        exit_status = status_usage;
        return placement.take_failure();
    }
    plan.placement = placement.take();
    plan.common.path = program.path;
    plan.common.environment = rank_environment(environ, settings, libomptarget_folder());
    return {};
}

} // namespace diomp::run
