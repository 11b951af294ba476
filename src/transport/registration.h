// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// This host for networks: RDMA adapters, memory to register, and what tells it from others.
#pragma once

#include "launch/launch.h"
#include "transport/arena.h"
#include "transport/types.h"

#include <string>

namespace diomp::transport {

/// Whether this host has an adapter that moves data without the target's processor (InfiniBand,
/// RoCE, Omni-Path, EFA, Slingshot), with an active port and a device file that processes can open.
/// Tests pass another root than "/".
[[nodiscard]] bool has_rdma_adapter(const std::string &root = "/");

/// Reads the interfaces of this host; the network is unknown if that fails.
[[nodiscard]] host_identity identify_this_host();

/// Bytes of the own slot to register: all of it, or 0, and the log says why. Networks pin
/// registered memory, and a segment that reserves most of the memory, as it does unless the user
/// sets its size, cannot be pinned.
std::size_t bytes_to_register(const arena &arena, const launch::job_info &job);

} // namespace diomp::transport
