// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices.h"

#include "offload/service/target.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <elf.h>
#include <fstream>
#include <string>
#include <unistd.h>

namespace diomp::deviced {
namespace {

constexpr std::uint32_t own_machine =
#if defined(__x86_64__)
    EM_X86_64;
#elif defined(__aarch64__)
    EM_AARCH64;
#else
#error "which ELF machine is this?"
#endif

/// Processors that this process may use, in the order of NUMA nodes and cores.
std::vector<int> processors_in_order() {
    std::vector<int> found;
    hwloc_topology_t topology = nullptr;
    if (hwloc_topology_init(&topology) == 0 && hwloc_topology_load(topology) == 0) {
        hwloc_bitmap_t const allowed = hwloc_bitmap_alloc();
        hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS);
        for (hwloc_obj_t each = nullptr;
             (each = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, each)) != nullptr;) {
            if (hwloc_bitmap_isset(allowed, each->os_index) != 0) {
                found.push_back(static_cast<int>(each->os_index));
            }
        }
        hwloc_bitmap_free(allowed);
    }
    hwloc_topology_destroy(topology);
    return found;
}

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        auto const colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos) {
            return line.substr(colon + 2);
        }
    }
    return own_machine == EM_AARCH64 ? "aarch64 processor" : "processor";
}

} // namespace

std::vector<offload::service::lent_device> cpu_devices(int count, std::size_t memory_bytes) {
    std::vector<int> const all = processors_in_order();
    auto const devices = static_cast<std::size_t>(count);
    if (memory_bytes == 0) {
        memory_bytes = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / devices;
    }
    std::string const name = processor_name();
    offload::remote::device_description const host = offload::service::describe_host();
    std::vector<offload::service::lent_device> lent(devices);
    for (std::size_t i = 0; i < devices; ++i) {
        // With more devices than processors, devices share them; otherwise each has its own.
        std::size_t const begin = all.size() * i / devices;
        std::size_t const end = std::max(all.size() * (i + 1) / devices, begin + 1);
        for (std::size_t index = begin; index < end && index < all.size(); ++index) {
            lent[i].processors.push_back(all[index]);
        }
        auto &about = lent[i].description = host;
        about.num_devices = static_cast<std::uint32_t>(count);
        about.machine = own_machine;
        about.memory_bytes = memory_bytes;
        about.num_threads =
            static_cast<std::uint32_t>(std::max<std::size_t>(lent[i].processors.size(), 1));
        about.kind = "cpu";
        about.name = name;
    }
    return lent;
}

result<std::vector<offload::service::lent_device>> plugin_devices(const std::string &plugin,
                                                                  std::size_t memory_bytes) {
    auto found = offload::service::query_plugin(plugin);
    DIOMP_TRY(found);
    auto const &gpus = found.value().devices;
    std::vector<offload::service::lent_device> lent =
        cpu_devices(static_cast<int>(gpus.size()), memory_bytes);
    for (std::size_t i = 0; i < lent.size(); ++i) {
        lent[i].number = static_cast<int>(i);
        lent[i].description.machine = found.value().machine;
        lent[i].description.kind = plugin;
        lent[i].description.architecture = gpus[i].architecture;
        lent[i].description.own_memory_bytes = gpus[i].memory_bytes;
        lent[i].description.name =
            fmt::format("device {} of LLVM's plugin '{}'{}{}", i, plugin,
                        gpus[i].architecture.empty() ? "" : ", ", gpus[i].architecture);
    }
    return lent;
}

} // namespace diomp::deviced
