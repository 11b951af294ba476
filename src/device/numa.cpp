// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/numa.h"

#include <cctype>
#include <fstream>

namespace diomp::device {

int numa_node_of(const std::string &pci_bus_id) {
    std::string name; // vendors print capital letters, the kernel has small ones
    for (char const letter : pci_bus_id) {
        name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    std::ifstream file("/sys/bus/pci/devices/" + name + "/numa_node");
    int node = -1;
    return file >> node ? node : -1;
}

} // namespace diomp::device
