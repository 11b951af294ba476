// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ports of a job's GPI-2. Each rank listens at three: a base, the same for the whole job, plus its
// number on the host, at two distances more. A base has room for the 256 ranks that GPI-2 allows
// per host.
#pragma once

#include "base/unique_fd.h"

#include <cstdint>
#include <string>
#include <vector>

namespace diomp::launch::gaspi {

constexpr int most_ranks_per_host = 256;
/// From a base to the port of GPI-2's start-up, which GPI-2 fixes, and to that of its TCP device.
constexpr int start_up_distance = most_ranks_per_host;
constexpr int device_distance = 2 * most_ranks_per_host;

/// Bases that a job may take, in the order in which it tries them.
[[nodiscard]] std::vector<int> candidate_bases(const std::string &job);

/// A base that is held for one rank, against other jobs of this kind; free of everybody else's
/// listeners. Invalid if it was not free. Held while the process lives.
[[nodiscard]] unique_fd hold_base(int base, int number_on_host);

} // namespace diomp::launch::gaspi
