// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/gaspi/cores.h"

#include <sstream>

namespace diomp::launch::gaspi {

std::string own_cores() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    ::sched_getaffinity(0, sizeof(cores), &cores);
    std::string text;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &cores)) {
            text += std::to_string(core) + " ";
        }
    }
    return text;
}

shared_cores::shared_cores(const std::vector<std::string> &lists) {
    ::sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t all = before_;
    for (std::string const &list : lists) {
        std::istringstream words(list);
        for (std::size_t core = 0; words >> core && core < CPU_SETSIZE;) {
            CPU_SET(core, &all);
        }
    }
    ::sched_setaffinity(0, sizeof(all), &all); // on failure: the cores of the own rank
}

} // namespace diomp::launch::gaspi
