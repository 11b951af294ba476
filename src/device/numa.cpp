// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/numa.h"

#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <vector>

namespace diomp::device {
namespace {

/// The processors on which the calling thread may run; [cpu].
std::vector<bool> allowed_cpus() {
    // The kernel rejects a mask that is too small for the machine; grow until it fits.
    for (std::size_t cpus = 1024; cpus <= (std::size_t{1} << 20); cpus *= 2) {
        std::vector<cpu_set_t> mask(cpus / 1024);
        std::size_t const size_bytes = mask.size() * sizeof(cpu_set_t);
        if (::sched_getaffinity(0, size_bytes, mask.data()) == 0) {
            std::vector<bool> allowed(cpus);
            for (std::size_t cpu = 0; cpu < cpus; ++cpu) {
                allowed[cpu] = CPU_ISSET_S(cpu, size_bytes, mask.data()) != 0;
            }
            return allowed;
        }
    }
    return {};
}

/// Whether one of the processors in the kernel's list ("0-3,8") is allowed.
bool any_allowed(const std::string &list, const std::vector<bool> &allowed) {
    std::istringstream parts(list);
    for (std::string part; std::getline(parts, part, ',');) {
        std::size_t first = 0;
        std::size_t last = 0;
        char dash = 0;
        std::istringstream range(part);
        if (!(range >> first)) {
            continue;
        }
        if (!(range >> dash >> last) || dash != '-') {
            last = first;
        }
        for (std::size_t cpu = first; cpu <= last && cpu < allowed.size(); ++cpu) {
            if (allowed[cpu]) {
                return true;
            }
        }
    }
    return false;
}

/// The number in "node3"; -1 for other names.
int node_number(const std::string &name) {
    std::istringstream text(name);
    std::string word(4, '\0');
    int number = -1;
    text.read(word.data(), 4);
    return word == "node" && text >> number && text.peek() == EOF ? number : -1;
}

} // namespace

int numa_node_of(const std::string &pci_bus_id) {
    std::string name; // vendors print upper case, the kernel uses lower case
    for (char const character : pci_bus_id) {
        name += static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
    }
    std::ifstream file("/sys/bus/pci/devices/" + name + "/numa_node");
    int node = -1;
    return file >> node ? node : -1;
}

int numa_node_of_thread(const std::string &nodes) {
    std::vector<bool> const allowed = allowed_cpus();
    int found = -1;
    std::error_code failure;
    for (auto const &entry : std::filesystem::directory_iterator(nodes, failure)) {
        int const node = node_number(entry.path().filename());
        std::string list;
        if (node < 0 || !std::getline(std::ifstream(entry.path() / "cpulist"), list) ||
            !any_allowed(list, allowed)) {
            continue;
        }
        if (found >= 0) {
            return -1;
        }
        found = node;
    }
    return found;
}

bool has_one_numa_node(const std::string &nodes) {
    int found = 0;
    std::error_code failure;
    for (auto const &entry : std::filesystem::directory_iterator(nodes, failure)) {
        found += node_number(entry.path().filename()) >= 0 ? 1 : 0;
    }
    return found <= 1;
}

int numa_distance(int from_node, int to_node, const std::string &nodes) {
    constexpr int within = 10;
    constexpr int between = 20;
    // Distances are listed in the order of the existing nodes, whose numbers may have gaps.
    int column = -1;
    std::error_code failure;
    for (auto const &entry : std::filesystem::directory_iterator(nodes, failure)) {
        int const node = node_number(entry.path().filename());
        column += node >= 0 && node <= to_node ? 1 : 0;
    }
    std::ifstream file(nodes + "/node" + std::to_string(from_node) + "/distance");
    int distance = from_node == to_node ? within : between;
    int value = 0;
    for (int i = 0; i <= column && file >> value; ++i) {
        if (i == column &&
            std::filesystem::exists(nodes + "/node" + std::to_string(to_node), failure)) {
            distance = value;
        }
    }
    return distance;
}

} // namespace diomp::device
