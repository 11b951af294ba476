// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which devices of a node each of its ranks drives. Arithmetic only: every rank computes the whole
// table from the same facts and reads its own row, so nobody has to tell anybody.
#pragma once

#include "base/result.h"

#include <functional>
#include <vector>

namespace diomp::device {

/// Facts about the ranks that see the same devices. A NUMA node of -1 is not known.
struct binding_request {
    std::vector<int> device_nodes; ///< [device] NUMA node whose memory is next to the device
    std::vector<int> rank_nodes;   ///< [local rank] NUMA node of the cores that the rank may use
    int devices_per_rank = 1;
    /// Of two known nodes: small is near. The kernel's numbers: numa_distance() of device/numa.h.
    std::function<int(int rank_node, int device_node)> distance;
};

/// [local rank] -> its devices, nearest first. In this order of importance:
/// - no device has two ranks more than another;
/// - a rank gets the nearest devices that are left; what is not known counts as farthest;
/// - low numbers go first, of ranks and of devices.
/// Ranks share devices only if one device per rank was asked for and there are fewer devices than
/// ranks. OMPX_ERR_ARG: several per rank, and not enough for all; no devices; none asked for.
result<std::vector<std::vector<int>>> bind_devices(const binding_request &request);

} // namespace diomp::device
