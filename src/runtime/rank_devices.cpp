// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/rank_devices.h"

#include "base/log.h"
#include "device/binding.h"
#include "device/device.h"
#include "device/numa.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <numeric>
#include <strings.h>

namespace diomp::runtime {
namespace {

constexpr std::string_view key = "runtime.place";

/// Environment variables that hide devices from a process. The kernel can hide devices as well
/// (control groups); each rank then sees its own devices under the same numbers as other ranks.
constexpr std::array<const char *, 4> visibility_variables{
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"};

bool is_gpu(const openmp_device &device) {
    return device.plugin == "cuda" || device.plugin == "amdgpu";
}

/// The first host devices. No error if there are no devices: most programs use none.
result<std::vector<int>> first_of_host(int devices_per_rank, std::size_t num) {
    if (num == 0) {
        return std::vector<int>{};
    }
    if (static_cast<std::size_t>(devices_per_rank) > num) {
        return error(OMPX_ERR_ARG,
                     fmt::format("{} devices per rank, but a rank has {} host device{}",
                                 devices_per_rank, num, num == 1 ? "" : "s"),
                     fmt::format("pass --devices-per-rank (DIOMP_DEVICES_PER_RANK) {}{}",
                                 num == 1 ? "" : "from 1 to ", num));
    }
    std::vector<int> chosen(static_cast<std::size_t>(devices_per_rank));
    std::iota(chosen.begin(), chosen.end(), 0);
    return chosen;
}

/// NUMA nodes of `devices`, -1 where unknown.
std::vector<int> nodes_of(const std::vector<openmp_device> &devices, const node_query &query) {
    std::map<std::string, std::vector<int>> known;
    std::vector<int> nodes;
    for (openmp_device const &device : devices) {
        auto [known_nodes, is_new] = known.try_emplace(device.plugin);
        if (is_new) {
            if (auto queried = query(device.plugin); queried) {
                known_nodes->second = queried.take();
            } else {
                log(log_level::info, "devices are bound without their NUMA nodes: {}",
                    queried.failure().message());
            }
        }
        auto const index = static_cast<std::size_t>(device.plugin_device);
        nodes.push_back(index < known_nodes->second.size() ? known_nodes->second[index] : -1);
    }
    return nodes;
}

} // namespace

bool offload_is_disabled() {
    const char *const policy = std::getenv("OMP_TARGET_OFFLOAD");
    return policy != nullptr && ::strcasecmp(policy, "disabled") == 0;
}

node_query query_vendors(const settings &values) {
    return [cuda = values.device.cuda_library, hip = values.device.hip_library](
               const std::string &plugin) -> result<std::vector<int>> {
        if (plugin == "cuda") {
            return device::numa_nodes_of_cuda({.path = cuda});
        }
        if (plugin == "amdgpu") {
            return device::numa_nodes_of_hip({.path = hip});
        }
        return std::vector<int>{};
    };
}

rank_locality detect_locality() {
    rank_locality here;
    here.numa_node = device::numa_node_of_thread();
    for (const char *const name : visibility_variables) {
        if (const char *const value = std::getenv(name); value != nullptr) {
            here.visible += fmt::format("{}={};", name, value);
        }
    }
    return here;
}

std::string to_text(const rank_locality &locality) {
    return fmt::format("{} {}", locality.numa_node, locality.visible);
}

rank_locality locality_from(const std::string &text) {
    rank_locality locality;
    const char *const end = text.data() + text.size();
    auto const [next, code] = std::from_chars(text.data(), end, locality.numa_node);
    if (code != std::errc{} || next == end || *next != ' ') {
        return {};
    }
    locality.visible.assign(next + 1, end);
    return locality;
}

status publish_locality(launch::launcher &launcher) {
    if (launcher.info().size == 1) {
        return {};
    }
    return launcher.put(key, to_text(detect_locality()));
}

std::vector<rank_locality> read_localities(launch::launcher &launcher) {
    launch::job_info const &job = launcher.info();
    if (job.size == 1) {
        return {detect_locality()};
    }
    std::vector<rank_locality> localities;
    for (world_rank const rank : job.local_ranks) {
        auto const text = launcher.get(rank, key);
        localities.push_back(text ? locality_from(text.value()) : rank_locality{});
    }
    return localities;
}

result<device_rows> divide_devices(const settings &values, const std::vector<int> &rank_nodes,
                                   const std::vector<openmp_device> &devices,
                                   const node_query &nodes) {
    bool const have_gpus = std::ranges::any_of(devices, is_gpu);
    std::vector<openmp_device> shared;
    std::vector<int> numbers; ///< OpenMP's, of `shared`
    for (std::size_t number = 0; number < devices.size(); ++number) {
        if (have_gpus ? is_gpu(devices[number]) : values.device.numa_nodes.has_value()) {
            shared.push_back(devices[number]);
            numbers.push_back(static_cast<int>(number));
        }
    }
    if (shared.empty()) {
        auto own = first_of_host(values.device.per_rank, devices.size());
        DIOMP_TRY(own);
        return device_rows(rank_nodes.size(), own.value());
    }
    device::binding_request request;
    if (values.device.numa_nodes) {
        request.device_nodes = *values.device.numa_nodes;
        request.device_nodes.resize(shared.size(), -1);
    } else {
        request.device_nodes = nodes_of(shared, nodes);
    }
    request.rank_nodes = rank_nodes;
    request.devices_per_rank = values.device.per_rank;
    request.distance = [](int from, int to) { return device::numa_distance(from, to); };
    auto bound = device::bind_devices(request);
    DIOMP_TRY(bound);
    for (std::vector<int> &row : bound.value()) {
        for (int &device : row) {
            device = numbers[static_cast<std::size_t>(device)];
        }
    }
    return bound;
}

result<std::vector<int>> choose_devices(const settings &values,
                                        const std::vector<rank_locality> &localities,
                                        std::size_t own, const std::vector<openmp_device> &devices,
                                        const node_query &nodes) {
    std::vector<int> rank_nodes;
    std::size_t row = 0;
    for (std::size_t rank = 0; rank < localities.size(); ++rank) {
        if (localities[rank].visible == localities[own].visible) {
            row += rank < own ? 1 : 0;
            rank_nodes.push_back(localities[rank].numa_node);
        }
    }
    auto all = divide_devices(values, rank_nodes, devices, nodes);
    DIOMP_TRY(all);
    return all.value()[row];
}

} // namespace diomp::runtime
