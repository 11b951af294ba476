// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a node keeps about one rank.
#pragma once

#include "rank_link.h"
#include "watched_process.h"

#include <memory>

namespace diomp::run {

struct rank_process {
    watched_process process;
    std::unique_ptr<rank_link> link;
    bool ended = false;
};

} // namespace diomp::run
