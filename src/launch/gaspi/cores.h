// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which cores GPI-2's threads may use.
#pragma once

#include <sched.h>
#include <string>
#include <vector>

namespace diomp::launch::gaspi {

/// The cores that the calling thread may use, as a list that shared_cores takes.
std::string own_cores();

/// While it lives the calling thread, and those that it makes, may use the cores of all ranks of
/// the host. Bound to the core of their own rank GPI-2's threads would take turns with it while
/// that of a waiting rank is free.
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
