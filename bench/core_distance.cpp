// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How far apart are the first two cores that this process may use? Prints the nanoseconds of a
// round trip of a cache line between them; 0: there is only one.
#include "two_cores.h"

#include <cstdio>

int main() {
    using namespace diomp::bench;
    const std::vector<int> cores = own_cores();
    std::printf("%.0f\n", cores.size() < 2 ? 0.0 : core_distance(cores[0], cores[1]));
    return 0;
}
