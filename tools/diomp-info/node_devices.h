// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Devices of this machine as the backends find them, and the transfer paths between them.
#pragma once

#include "config/settings.h"
#include "device/device.h"

#include <string>
#include <vector>

namespace diomp::info {

struct listed_device {
    device::properties details;
    std::string failure; ///< not empty: the device exists, but its properties cannot be read
};

/// The devices of one vendor, or LLVM's host devices.
struct device_list {
    std::string backend; ///< "host", "cuda", "hip"
    std::string missing; ///< reason why there are none, in one line
    std::vector<listed_device> devices;
    /// [from][to] Queues of the first device can access memory of the second.
    std::vector<std::vector<bool>> peer_access;
};

/// Lists host devices, CUDA and HIP. Opens a context on each GPU for a short time.
std::vector<device_list> list_devices(const settings &values);

/// Transfer paths between two kinds of memory.
struct path_row {
    std::string from;
    std::string to;
    std::string in_rank;       ///< within one rank
    std::string between_ranks; ///< between two ranks of the node
    std::string between_nodes;
};
/// Returns a row for each kind of pair among the devices and host memory, with the paths that the
/// devices, their drivers and DIOMP_DEVICE_PATHS allow. Depends on the arguments only.
std::vector<path_row> list_paths(const std::vector<device_list> &lists, device_path_set allowed);

/// How calls in target regions reach memory, as device_call_paths and the paths of transfers allow.
struct call_row {
    std::string from;
    std::string to;
    std::string path;
};
/// A row for each kind of device and of memory, as docs/device-calls.md has them.
std::vector<call_row> list_calls(const std::vector<device_list> &lists,
                                 const offload_settings &values);

} // namespace diomp::info
