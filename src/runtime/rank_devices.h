// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of OpenMP's devices this rank drives. Host devices are private to each process; GPUs are
// divided among the ranks of a node (device/binding.h).
//
// Each rank publishes at start-up the NUMA node of its processors and the environment variables
// that hide devices from it, and computes its devices on first use without further messages: OpenMP
// numbers its devices after the runtime has started, and most programs have none.
#pragma once

#include "base/result.h"
#include "config/settings.h"
#include "launch/launch.h"

#include <functional>
#include <string>
#include <vector>

namespace diomp::runtime {

/// The plugin and the plugin's device number of an OpenMP device (offload/device_names.h).
struct openmp_device {
    std::string plugin;
    int plugin_device = 0;
};

/// Whether OMP_TARGET_OFFLOAD=DISABLED. libomptarget still counts its devices then, but no region
/// runs there (OpenMP 5.2, 21.2.8).
bool offload_is_disabled();

/// Returns the NUMA nodes of a plugin's devices, [plugin_device].
using node_query = std::function<result<std::vector<int>>(const std::string &plugin)>;
/// Queries the vendors' libraries, the ones with which libomptarget has found the devices.
node_query query_vendors(const settings &values);

/// Published by each rank for the other ranks of its node.
struct rank_locality {
    int numa_node = -1;  ///< of all its processors; -1: several nodes, or unknown
    std::string visible; ///< variables by which a launcher or user hides devices
};
rank_locality detect_locality();
std::string to_text(const rank_locality &locality);
/// Parses to_text()'s result; other texts give an unknown locality.
rank_locality locality_from(const std::string &text);

/// Publishes this rank's locality for the other ranks of the node; call before the start-up fence.
/// No operation in a world of one rank.
status publish_locality(launch::launcher &launcher);

/// The localities of the node's ranks, [local rank]. Does not block on other ranks.
std::vector<rank_locality> read_localities(launch::launcher &launcher);

/// [rank]: OpenMP's numbers of its devices, nearest first.
using device_rows = std::vector<std::vector<int>>;
/// Divides the devices among ranks of a node that see the same devices; rank_nodes[rank] is the
/// NUMA node of a rank's processors. Each rank gets DIOMP_DEVICES_PER_RANK devices, or none if
/// there are no devices at all: GPUs if there are any, otherwise host devices. Errors: OMPX_ERR_ARG
/// if there are too few devices.
result<device_rows> divide_devices(const settings &values, const std::vector<int> &rank_nodes,
                                   const std::vector<openmp_device> &devices,
                                   const node_query &nodes);
/// The devices of the node's rank number `own`. Ranks that see other devices take none of them.
result<std::vector<int>> choose_devices(const settings &values,
                                        const std::vector<rank_locality> &localities,
                                        std::size_t own, const std::vector<openmp_device> &devices,
                                        const node_query &nodes);

} // namespace diomp::runtime
