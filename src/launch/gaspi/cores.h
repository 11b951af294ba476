// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CPU affinity of GPI-2's threads.
#pragma once

#include <sched.h>
#include <string>
#include <vector>

namespace diomp::launch::gaspi {

/// The cores that the calling thread may use, as a list for shared_cores.
std::string own_cores();

/// During its lifetime the calling thread, and threads that it creates, may use the cores of all
/// ranks of the host. Bound to the core of its own rank, a thread of GPI-2 would compete with the
/// rank while the core of a waiting rank is idle.
class shared_cores {
public:
    explicit shared_cores(const std::vector<std::string> &lists);
    ~shared_cores() { ::sched_setaffinity(0, sizeof(before_), &before_); }
    shared_cores(const shared_cores &) = delete;
    shared_cores &operator=(const shared_cores &) = delete;

private:
    cpu_set_t before_{};
};

} // namespace diomp::launch::gaspi
