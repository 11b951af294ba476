// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The master process by which the workers of a job over GASNet-EX's udp conduit find each other.
// GASNet's own spawner (amudprun) provides it; here it is started for a job of another launcher.
#pragma once

#include "base/result.h"

#include <string>
#include <sys/types.h>

namespace diomp::launch::gasnet {

struct udp_master {
    pid_t process = -1;
    std::string worker_arguments; ///< value of AMUDP_WORKER_ARGS for the workers
};

/// Forks the master for `num_workers` processes, on one host or several. It ends when it is killed,
/// or with the calling thread. Blocks until it listens.
result<udp_master> start_udp_master(int num_workers, bool one_host);

} // namespace diomp::launch::gasnet
