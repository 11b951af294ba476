// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Assigns the devices of a node to its ranks. Arithmetic only: each rank computes the whole table
// from the same data and reads its own row, so no communication is needed.
#pragma once

#include "base/result.h"

#include <functional>
#include <vector>

namespace diomp::device {

/// Data about the ranks that see the same devices. NUMA node -1: unknown.
struct binding_request {
    std::vector<int> device_nodes; ///< [device] NUMA node nearest to the device
    std::vector<int> rank_nodes;   ///< [local rank] NUMA node of the cores that the rank may use
    int devices_per_rank = 1;
    /// Distance between two known nodes, as numa_distance() of device/numa.h returns it.
    std::function<int(int rank_node, int device_node)> distance;
};

/// Returns [local rank] -> its devices, nearest first. Rules in order of importance:
/// - no device has two ranks more than another;
/// - a rank gets the nearest devices that are left; unknown distances count as farthest;
/// - low numbers go first, of ranks and of devices.
/// Ranks share devices only if one device per rank is requested and there are fewer devices than
/// ranks. OMPX_ERR_ARG: several devices per rank are requested and there are too few, or there are
/// no devices, or none are requested.
result<std::vector<std::vector<int>>> bind_devices(const binding_request &request);

} // namespace diomp::device
