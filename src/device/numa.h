// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which memory of the host a device is next to. The kernel knows, for every vendor.
#pragma once

#include <string>

namespace diomp::device {

/// Of a device on the PCI bus, "0000:3b:00.0" in either case of letters; -1 if nobody says.
int numa_node_of(const std::string &pci_bus_id);

} // namespace diomp::device
