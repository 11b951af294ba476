// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// TCP ports of GPI-2. Each rank listens on three ports: a base, common to the whole job, plus its
// number on the host, and two more at fixed distances. A base covers the 256 ranks per host that
// GPI-2 allows.
#pragma once

#include "base/unique_fd.h"

#include <cstdint>
#include <string>
#include <vector>

namespace diomp::launch::gaspi {

constexpr int max_ranks_per_host = 256;
/// Distance from a base to the port of GPI-2's start-up, which GPI-2 defines, and to the port of
/// its TCP device.
constexpr int start_up_distance = max_ranks_per_host;
constexpr int device_distance = 2 * max_ranks_per_host;

/// Bases that a job may use, in the order of attempts.
[[nodiscard]] std::vector<int> candidate_bases(const std::string &job);

/// Reserves a base for one rank against other DiOMP jobs, and checks that no process listens on its
/// ports. Invalid if the base is in use. The reservation ends with the process.
[[nodiscard]] unique_fd reserve_base(int base, int number_on_host);

} // namespace diomp::launch::gaspi
