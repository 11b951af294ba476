// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which memory of the host a device or a process is next to. The kernel knows, for every vendor.
#pragma once

#include <string>

namespace diomp::device {

/// Of a device on the PCI bus, "0000:3b:00.0" in either case of letters; -1 if nobody says.
int numa_node_of(const std::string &pci_bus_id);

/// The node of all processors on which the calling thread may run; -1 if they are of several nodes
/// or nobody says. `nodes` is the kernel's folder.
int numa_node_of_thread(const std::string &nodes = "/sys/devices/system/node");

/// Whether all memory of the host is as near to each of its processors; true if nobody says.
bool has_one_numa_node(const std::string &nodes = "/sys/devices/system/node");

/// The kernel's (ACPI's) distance, 10 within a node. Where it has none: 10 and 20.
int numa_distance(int from_node, int to_node,
                  const std::string &nodes = "/sys/devices/system/node");

} // namespace diomp::device
