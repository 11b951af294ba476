// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "machine.h"

#include <hwloc.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <sys/utsname.h>
#include <unistd.h>

namespace diomp::info {
namespace {

void count_with_hwloc(machine &into) {
    hwloc_topology_t topology = nullptr;
    if (hwloc_topology_init(&topology) != 0) {
        return;
    }
    // Includes resources that this process may not use: both numbers are printed.
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc_topology_load(topology) == 0) {
        into.cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
        into.hardware_threads = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
        into.numa_nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    }
    hwloc_topology_destroy(topology);
}

std::size_t meminfo_bytes(const std::string &key) {
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::size_t kib = 0;
    std::string unit;
    while (file >> name >> kib && std::getline(file, unit)) {
        if (name == key + ":") {
            return kib * 1024;
        }
    }
    return 0;
}

/// Reads the lowest limits of the control groups (version 2) that contain this process; version 1
/// as fallback.
void read_control_group(machine &into) {
    std::string group;
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("0::")) {
            group = line.substr(3);
        }
    }
    std::string const root = "/sys/fs/cgroup";
    for (;;) {
        std::istringstream cpu(read_line(root + group + "/cpu.max"));
        double quota = 0;
        double period = 0;
        if (cpu >> quota >> period && period > 0) {
            into.cpu_quota = std::fmin(into.cpu_quota.value_or(quota / period), quota / period);
        }
        if (auto const limit = read_number(root + group + "/memory.max")) {
            auto const bytes = static_cast<std::size_t>(*limit);
            into.memory_limit_bytes = std::min(into.memory_limit_bytes.value_or(bytes), bytes);
        }
        if (group.empty() || group == "/") {
            break;
        }
        group.erase(group.rfind('/'));
    }
    auto const quota = read_number(root + "/cpu/cpu.cfs_quota_us");
    auto const period = read_number(root + "/cpu/cpu.cfs_period_us");
    if (!into.cpu_quota && quota && period && *quota > 0 && *period > 0) {
        into.cpu_quota = static_cast<double>(*quota) / static_cast<double>(*period);
    }
    auto const limit = read_number(root + "/memory/memory.limit_in_bytes");
    // Version 1 expresses "no limit" by a huge number.
    if (!into.memory_limit_bytes && limit && *limit < (1ll << 60)) {
        into.memory_limit_bytes = static_cast<std::size_t>(*limit);
    }
}

} // namespace

std::string read_line(const std::string &path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::optional<long long> read_number(const std::string &path) {
    std::string const line = read_line(path);
    long long value = 0;
    auto const [end, code] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (code != std::errc{} || end == line.data()) {
        return std::nullopt;
    }
    return value;
}

machine inspect_machine() {
    machine here;
    utsname names{};
    if (uname(&names) == 0) {
        here.host = static_cast<const char *>(names.nodename);
        here.kernel = static_cast<const char *>(names.release);
    }
    count_with_hwloc(here);
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
        here.usable_threads = CPU_COUNT(&mask);
    } else {
        // The machine has more processors than a cpu_set_t can hold.
        here.usable_threads = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    }
    here.memory_bytes = meminfo_bytes("MemTotal");
    here.available_bytes = meminfo_bytes("MemAvailable");
    read_control_group(here);
    return here;
}

} // namespace diomp::info
