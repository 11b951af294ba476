// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Devices of this machine as the backends find them, and how data gets from one to another.
#pragma once

#include "base/settings.h"
#include "device/device.h"

#include <string>
#include <vector>

namespace diomp::info {

struct listed_device {
    device::properties of;
    std::string failure; ///< not empty: it is there, but does not say what it is
};

/// Of one vendor, or LLVM's host devices.
struct device_list {
    std::string backend; ///< "host", "cuda", "hip"
    std::string missing; ///< why there are none, in one line
    std::vector<listed_device> devices;
    /// [from][to] queues of the first copy from and to memory of the second.
    std::vector<std::vector<bool>> reaches;
};

/// Host devices, CUDA and HIP. Opens a context on each GPU for a moment.
std::vector<device_list> list_devices(const settings &values);

/// What a transfer between two kinds of memory goes through.
struct path_row {
    std::string from;
    std::string to;
    std::string in_rank;       ///< both of one rank
    std::string between_ranks; ///< of two ranks of the node
    std::string between_nodes;
};
/// Each kind of pair that occurs among the devices, and host memory: what the devices, their
/// drivers and DIOMP_DEVICE_PATHS allow. Pure.
std::vector<path_row> list_paths(const std::vector<device_list> &lists, device_ways allowed);

} // namespace diomp::info
