// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of OpenMP's devices this rank drives. Host devices belong to each process alone; GPUs are
// shared by the ranks of a node, which divide them (device/binding.h).
//
// Every rank says at start-up where its processors are and which devices it was left by its
// environment, and computes its part when it is wanted, without asking anybody: OpenMP numbers its
// devices after the runtime has started, and most programs have none.
#pragma once

#include "base/result.h"
#include "base/settings.h"
#include "launch/launch.h"

#include <functional>
#include <string>
#include <vector>

namespace diomp::runtime {

/// What OpenMP's device number stands for, as in offload/device_names.h.
struct openmp_device {
    std::string plugin;
    int plugin_device = 0;
};

/// OMP_TARGET_OFFLOAD=DISABLED. libomptarget still counts its devices then, but no region runs
/// there (OpenMP 5.2, 21.2.8).
bool offload_is_disabled();

/// The setting DIOMP_DEVICE_NUMA_NODES, or what the vendor says: [plugin_device] NUMA node.
using node_query = std::function<result<std::vector<int>>(const std::string &plugin)>;
/// Asks the vendors' libraries, with which libomptarget has found the devices.
node_query ask_vendors(const settings &values);

/// What a rank tells the others of its node.
struct rank_place {
    int numa_node = -1;  ///< of all its processors; -1: of several nodes, or not known
    std::string visible; ///< the variables by which a launcher or user hides devices
};
rank_place look_at_own_place();
std::string to_text(const rank_place &place);
/// What is not such a text is a place of which nothing is known.
rank_place place_from(const std::string &text);

/// For the others of the node; before the fence of the start. Nothing to do for a rank alone.
status publish_place(launch::launcher &launcher);

/// The places of the node's ranks, [local rank]. Does not block on other ranks.
std::vector<rank_place> learn_places(launch::launcher &launcher);

/// [rank] OpenMP's numbers of its devices, nearest first.
using device_rows = std::vector<std::vector<int>>;
/// Of ranks of a node that see the same devices, [rank] by the NUMA node of their processors:
/// DIOMP_DEVICES_PER_RANK for each, or none where there are no devices at all. Of GPUs if there are
/// any, else of host devices. OMPX_ERR_ARG: there are not that many.
result<device_rows> divide_devices(const settings &values, const std::vector<int> &rank_nodes,
                                   const std::vector<openmp_device> &devices,
                                   const node_query &nodes);
/// The row of rank `own` of the node. Ranks that see other devices take none of its.
result<std::vector<int>> choose_devices(const settings &values,
                                        const std::vector<rank_place> &places, std::size_t own,
                                        const std::vector<openmp_device> &devices,
                                        const node_query &nodes);

} // namespace diomp::runtime
