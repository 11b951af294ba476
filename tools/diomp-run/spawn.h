// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Starts one process of a rank. posix_spawn cannot set a parent-death signal or an affinity, so
// this is vfork and exec by hand; it costs the same.
#pragma once

#include "cpu_layout.h"

#include <csignal>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace diomp::run {

struct spawn_request {
    std::string path;
    std::vector<std::string> arguments;   ///< the first is the program's name as the user wrote it
    std::vector<std::string> environment; ///< NAME=VALUE
    int standard_input = -1;
    int standard_output = -1;
    int standard_error = -1;
    int inherited = -1; ///< a descriptor that stays open across exec, although it is close-on-exec
                        ///< here
    cpu_list cpus;      ///< empty: unbound
    sigset_t signal_mask{};
    rlimit open_files{};
};

/// The process leads a group of its own and is killed when diomp-run dies. All signal handlers are
/// the default ones. Returns when exec has succeeded, or failed: then the error says why.
result<pid_t> spawn(const spawn_request &request);

} // namespace diomp::run
