// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NUMA locality of devices and processes, as the kernel reports it for all vendors.
#pragma once

#include <pthread.h>
#include <string>
#include <vector>

namespace diomp::device {

/// The NUMA node of a device on the PCI bus, "0000:3b:00.0" in upper or lower case; -1: unknown.
int numa_node_of(const std::string &pci_bus_id);

/// The NUMA node of the processors on which the calling thread may run; -1 if they belong to
/// several nodes or the node is unknown. `nodes` is the kernel's directory.
int numa_node_of_thread(const std::string &nodes = "/sys/devices/system/node");

/// [processor] Whether the calling thread may run there; empty if the kernel does not say.
using processor_set = std::vector<bool>;
processor_set processors_of_thread();
/// Processors of `allowed` that belong to the node; none if the node is -1 or unknown.
processor_set processors_of_node(int node, const processor_set &allowed,
                                 const std::string &nodes = "/sys/devices/system/node");
/// Lets a thread run on these processors only. False: there are none, or the kernel refuses.
bool bind_thread(pthread_t thread, const processor_set &to);

/// Whether the host has a single NUMA node; true if unknown.
bool has_one_numa_node(const std::string &nodes = "/sys/devices/system/node");

/// The kernel's (ACPI's) distance, 10 within a node. Without such data: 10 and 20.
int numa_distance(int from_node, int to_node,
                  const std::string &nodes = "/sys/devices/system/node");

} // namespace diomp::device
