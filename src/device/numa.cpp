// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/numa.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <vector>

namespace diomp::device {
namespace {

/// The processors of the kernel's list ("0-3,8") that are allowed.
processor_set allowed_of(const std::string &list, const processor_set &allowed) {
    processor_set found(allowed.size());
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
            found[cpu] = allowed[cpu];
        }
    }
    return found;
}

bool is_any(const processor_set &of) { return std::find(of.begin(), of.end(), true) != of.end(); }

/// The number in "node3"; -1 for other names.
int node_number(const std::string &name) {
    std::istringstream text(name);
    std::string word(4, '\0');
    int number = -1;
    text.read(word.data(), 4);
    return word == "node" && text >> number && text.peek() == EOF ? number : -1;
}

} // namespace

processor_set processors_of_thread() {
    // The kernel rejects a mask that is too small for the machine; grow until it fits.
    for (std::size_t cpus = 1024; cpus <= (std::size_t{1} << 20); cpus *= 2) {
        std::vector<cpu_set_t> mask(cpus / 1024);
        std::size_t const size_bytes = mask.size() * sizeof(cpu_set_t);
        if (::sched_getaffinity(0, size_bytes, mask.data()) == 0) {
            processor_set allowed(cpus);
            for (std::size_t cpu = 0; cpu < cpus; ++cpu) {
                allowed[cpu] = CPU_ISSET_S(cpu, size_bytes, mask.data()) != 0;
            }
            return allowed;
        }
    }
    return {};
}

processor_set processors_of_node(int node, const processor_set &allowed, const std::string &nodes) {
    std::string list;
    std::ifstream file(nodes + "/node" + std::to_string(node) + "/cpulist");
    return node >= 0 && std::getline(file, list) ? allowed_of(list, allowed) : processor_set{};
}

bool bind_thread(pthread_t thread, const processor_set &to) {
    if (!is_any(to)) {
        return false;
    }
    std::vector<cpu_set_t> mask((to.size() + CPU_SETSIZE - 1) / CPU_SETSIZE);
    std::size_t const size_bytes = mask.size() * sizeof(cpu_set_t);
    CPU_ZERO_S(size_bytes, mask.data());
    for (std::size_t cpu = 0; cpu < to.size(); ++cpu) {
        if (to[cpu]) {
            CPU_SET_S(cpu, size_bytes, mask.data());
        }
    }
    return ::pthread_setaffinity_np(thread, size_bytes, mask.data()) == 0;
}

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
    processor_set const allowed = processors_of_thread();
    int found = -1;
    std::error_code failure;
    for (auto const &entry : std::filesystem::directory_iterator(nodes, failure)) {
        int const node = node_number(entry.path().filename());
        std::string list;
        if (node < 0 || !std::getline(std::ifstream(entry.path() / "cpulist"), list) ||
            !is_any(allowed_of(list, allowed))) {
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
