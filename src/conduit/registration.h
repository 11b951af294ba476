// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What of this host and its segments a network may use.
#pragma once

#include "conduit/window.h"
#include "launch/launch.h"

#include <string>

namespace diomp::conduit {

/// This host has an adapter that moves data without the target's processor (InfiniBand, RoCE,
/// Omni-Path, EFA, Slingshot), with a port that is up and a device file that processes can open.
/// Tests look elsewhere than in "/".
[[nodiscard]] bool has_rdma_adapter(const std::string &root = "/");

/// All of the own slot, or 0, and the log says why: networks pin what they register, and a segment
/// that reserves most of the memory, as it does unless the user gives its size, cannot be pinned.
std::size_t bytes_to_register(const window &window, const launch::job_info &job);

} // namespace diomp::conduit
