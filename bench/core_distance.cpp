// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints the distance of the first two cores that this process may use: the nanoseconds of a round
// trip of a cache line between them; 0 if there is only one core.
#include "two_cores.h"

#include <cstdio>

int main() {
    using namespace diomp::bench;
    const std::vector<int> cores = allowed_cores();
    std::printf("%.0f\n", cores.size() < 2 ? 0.0 : core_distance(cores[0], cores[1]));
    return 0;
}
