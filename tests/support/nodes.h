// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which ranks a test finds mapped: those of its node, unless a network is forced on everyone.
#pragma once

#include "diomp.h"

#include <cstdlib>
#include <string_view>

namespace diomp_test {

inline bool is_mapped(int rank) {
    char const *const variable = std::getenv("DIOMP_CONDUIT");
    std::string_view const conduit = variable != nullptr ? variable : "auto";
    if (rank == ompx_rank_num() || (conduit != "auto" && conduit != "shm")) {
        return rank == ompx_rank_num();
    }
    // The ranks of a node are neighbours in all jobs that tests start.
    int const first = ompx_rank_num() - ompx_local_rank_num();
    return rank >= first && rank < first + ompx_num_local_ranks();
}

} // namespace diomp_test
