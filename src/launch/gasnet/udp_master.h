// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The master process that every job over GASNet-EX's udp conduit needs to find its workers. Under
// GASNet's own spawner (amudprun) it exists; here it is started for a job of another launcher.
#pragma once

#include "base/result.h"

#include <string>
#include <sys/types.h>

namespace diomp::launch::gasnet {

struct udp_master {
    pid_t process = -1;
    std::string worker_arguments; ///< what a worker must have in AMUDP_WORKER_ARGS to find it
};

/// Forks the master, for `num_workers` processes, on one host or several. It ends when it is
/// killed, or with the calling thread. Blocks until it listens.
result<udp_master> start_udp_master(int num_workers, bool one_host);

} // namespace diomp::launch::gasnet
