// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two ranks as forked processes, each a node of its own, with a launcher that does nothing when one
// of them dies: what a conduit does then is the question.
#pragma once

#include "launch/launch.h"

#include <functional>

namespace diomp_test {

/// Runs `body(launcher)` as rank 0 and as rank 1. Returns when rank 0 has ended: its exit status,
/// or -1 if a signal ended it. Rank 1 is then killed, whatever its state.
/// `beside(pid of rank 1)` runs in the caller meanwhile.
int run_two_ranks(const std::function<int(diomp::launch::launcher &)> &body,
                  const std::function<void(int)> &beside = {});

/// The process of rank 1, for rank 0.
int process_of_rank_1(diomp::launch::launcher &launcher);

} // namespace diomp_test
