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

/// What hides devices from a process. The kernel can as well (control groups); then each rank sees
/// its own few under the same numbers.
constexpr std::array<const char *, 4> hiding{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                             "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"};

bool is_gpu(const openmp_device &device) {
    return device.plugin == "cuda" || device.plugin == "amdgpu";
}

/// None of none: most programs have no devices, and want none.
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

/// NUMA nodes of `devices`, -1 for those of which nobody says anything.
std::vector<int> nodes_of(const std::vector<openmp_device> &devices, const node_query &ask) {
    std::map<std::string, std::vector<int>> known;
    std::vector<int> nodes;
    for (openmp_device const &device : devices) {
        auto [place, is_new] = known.try_emplace(device.plugin);
        if (is_new) {
            if (auto answer = ask(device.plugin); answer) {
                place->second = answer.take();
            } else {
                log(log_level::info, "devices are bound without their NUMA nodes: {}",
                    answer.failure().message());
            }
        }
        auto const index = static_cast<std::size_t>(device.plugin_device);
        nodes.push_back(index < place->second.size() ? place->second[index] : -1);
    }
    return nodes;
}

} // namespace

bool offload_is_disabled() {
    const char *const policy = std::getenv("OMP_TARGET_OFFLOAD");
    return policy != nullptr && ::strcasecmp(policy, "disabled") == 0;
}

node_query ask_vendors(const settings &values) {
    return [cuda = values.cuda_library,
            hip = values.hip_library](const std::string &plugin) -> result<std::vector<int>> {
        if (plugin == "cuda") {
            return device::numa_nodes_of_cuda({.path = cuda});
        }
        if (plugin == "amdgpu") {
            return device::numa_nodes_of_hip({.path = hip});
        }
        return std::vector<int>{};
    };
}

rank_place look_at_own_place() {
    rank_place here;
    here.numa_node = device::numa_node_of_thread();
    for (const char *const name : hiding) {
        if (const char *const value = std::getenv(name); value != nullptr) {
            here.visible += fmt::format("{}={};", name, value);
        }
    }
    return here;
}

std::string to_text(const rank_place &place) {
    return fmt::format("{} {}", place.numa_node, place.visible);
}

rank_place place_from(const std::string &text) {
    rank_place place;
    const char *const end = text.data() + text.size();
    auto const [next, code] = std::from_chars(text.data(), end, place.numa_node);
    if (code != std::errc{} || next == end || *next != ' ') {
        return {};
    }
    place.visible.assign(next + 1, end);
    return place;
}

status publish_place(launch::launcher &launcher) {
    if (launcher.info().size == 1) {
        return {};
    }
    return launcher.put(key, to_text(look_at_own_place()));
}

std::vector<rank_place> learn_places(launch::launcher &launcher) {
    launch::job_info const &job = launcher.info();
    if (job.size == 1) {
        return {look_at_own_place()};
    }
    std::vector<rank_place> places;
    for (world_rank const rank : job.local_ranks) {
        auto const text = launcher.get(rank, key);
        places.push_back(text ? place_from(text.value()) : rank_place{});
    }
    return places;
}

result<device_rows> divide_devices(const settings &values, const std::vector<int> &rank_nodes,
                                   const std::vector<openmp_device> &devices,
                                   const node_query &nodes) {
    bool const have_gpus = std::ranges::any_of(devices, is_gpu);
    std::vector<openmp_device> shared;
    std::vector<int> numbers; ///< OpenMP's, of `shared`
    for (std::size_t number = 0; number < devices.size(); ++number) {
        if (have_gpus ? is_gpu(devices[number]) : values.device_numa_nodes.has_value()) {
            shared.push_back(devices[number]);
            numbers.push_back(static_cast<int>(number));
        }
    }
    if (shared.empty()) {
        auto own = first_of_host(values.devices_per_rank, devices.size());
        DIOMP_TRY(own);
        return device_rows(rank_nodes.size(), own.value());
    }
    device::binding_request request;
    if (values.device_numa_nodes) {
        request.device_nodes = *values.device_numa_nodes;
        request.device_nodes.resize(shared.size(), -1);
    } else {
        request.device_nodes = nodes_of(shared, nodes);
    }
    request.rank_nodes = rank_nodes;
    request.devices_per_rank = values.devices_per_rank;
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
                                        const std::vector<rank_place> &places, std::size_t own,
                                        const std::vector<openmp_device> &devices,
                                        const node_query &nodes) {
    std::vector<int> rank_nodes;
    std::size_t row = 0;
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
        if (places[rank].visible == places[own].visible) {
            row += rank < own ? 1 : 0;
            rank_nodes.push_back(places[rank].numa_node);
        }
    }
    auto all = divide_devices(values, rank_nodes, devices, nodes);
    DIOMP_TRY(all);
    return all.value()[row];
}

} // namespace diomp::runtime
