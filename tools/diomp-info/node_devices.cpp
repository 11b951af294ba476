// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "node_devices.h"

#include "base/llvm_versions.h"
#include "device/numa.h"
#include "offload/device_segments.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <functional>

namespace diomp::info {
namespace {

using make_backend =
    std::function<result<std::unique_ptr<device::backend>>(const device::library_path_option &)>;

device_list query_backend(const char *name, const make_backend &make, const std::string &library) {
    device_list list;
    list.backend = name;
    auto made = make({.path = library});
    if (!made) {
        list.missing = made.failure().message();
        return list;
    }
    device::backend &backend = *made.value();
    int const count = backend.num_devices();
    for (int number = 0; number < count; ++number) {
        listed_device each;
        if (auto found = backend.describe(device::device_id(number)); found) {
            each.details = found.take();
        } else {
            each.failure = found.failure().message();
        }
        list.devices.push_back(std::move(each));
        std::vector<bool> row;
        for (int other = 0; other < count; ++other) {
            auto const can =
                backend.can_access(device::device_id(number), device::device_id(other));
            row.push_back(can.ok() && can.value());
        }
        list.peer_access.push_back(std::move(row));
    }
    return list;
}

/// Lists LLVM's host devices, which exist if DiOMP's libomptarget is installed.
device_list find_host_devices() {
    device_list list;
    list.backend = "host";
    std::error_code failure;
    auto const self = std::filesystem::read_symlink("/proc/self/exe", failure);
    auto const folder = (self.parent_path() / DIOMP_BIN_TO_LIB / "diomp").lexically_normal();
    if (installed_llvm_versions(folder).empty()) {
        list.missing = "DiOMP's libomptarget is not installed in " + folder.string();
        return list;
    }
    listed_device each;
    each.details.name = "LLVM's host plugin";
    each.details.host_loadable = true;
    list.devices.assign(offload::device_segments::num_host_devices, each);
    list.peer_access.assign(list.devices.size(), std::vector<bool>(list.devices.size(), true));
    return list;
}

constexpr const char *bounce = "bounce through pinned host memory";
constexpr const char *bounce_and_conduit = "bounce, then the conduit";

path_row row_within(const device_list &list, device_path_set allowed, bool is_same,
                    bool peer_access, bool has_ipc) {
    path_row row;
    row.from = list.backend + " device";
    row.to =
        is_same ? "itself" : fmt::format("one it {}", peer_access ? "reaches" : "cannot reach");
    bool const by_peer = peer_access && allows(allowed, device_path_set::peer);
    bool const by_ipc = peer_access && has_ipc && allows(allowed, device_path_set::ipc);
    row.in_rank = is_same ? "the device copies" : by_peer ? "peer access" : bounce;
    row.between_ranks = !by_ipc ? bounce : is_same ? "IPC" : "IPC and peer access";
    row.between_nodes = bounce_and_conduit;
    return row;
}

/// Adds the kinds of pairs among one vendor's devices, each once.
void add_gpu_rows(const device_list &list, device_path_set allowed, std::vector<path_row> &rows) {
    auto const add = [&rows](path_row row) {
        for (path_row const &known : rows) {
            if (known.from == row.from && known.to == row.to &&
                known.between_ranks == row.between_ranks) {
                return;
            }
        }
        rows.push_back(std::move(row));
    };
    std::size_t const count = list.devices.size();
    for (std::size_t from = 0; from < count; ++from) {
        add(row_within(list, allowed, true, true, list.devices[from].details.memory_shares));
    }
    for (std::size_t from = 0; from < count; ++from) {
        for (std::size_t to = 0; to < count; ++to) {
            if (from != to) {
                add(row_within(list, allowed, false, list.peer_access[from][to],
                               list.devices[to].details.memory_shares));
            }
        }
    }
    rows.push_back({list.backend + " device", "host memory", "the device copies",
                    "the device copies", bounce_and_conduit});
}

constexpr const char *loads_and_stores = "loads and stores";

/// The calls of one vendor's devices.
void add_call_rows(const device_list &list, const offload_settings &values,
                   std::vector<call_row> &rows) {
    std::string const from = list.backend + " device";
    std::string const otherwise = values.calls == device_call_paths::direct
                                      ? "unreachable"
                                      : "requests to the rank's proxy thread";
    bool const maps = values.calls != device_call_paths::ring &&
                      allows(values.paths, device_path_set::ipc) &&
                      list.devices.front().details.memory_shares;
    rows.push_back({from, "its rank's memory on it", loads_and_stores});
    rows.push_back(
        {from, "other ranks of the node, same device", maps ? loads_and_stores : otherwise});
    bool const all_reach = std::ranges::all_of(list.peer_access, [](const auto &row) {
        return std::ranges::all_of(row, [](bool reaches) { return reaches; });
    });
    if (list.devices.size() > 1) {
        rows.push_back({from, "other ranks of the node, other devices",
                        !maps       ? otherwise
                        : all_reach ? loads_and_stores
                                    : "loads and stores with peer access, else " + otherwise});
    }
    rows.push_back({from, "other nodes, global host memory", otherwise});
}

} // namespace

std::vector<call_row> list_calls(const std::vector<device_list> &lists,
                                 const offload_settings &values) {
    std::vector<call_row> rows;
    for (device_list const &list : lists) {
        if (list.devices.empty()) {
            continue;
        }
        if (list.devices.front().details.host_loadable) {
            rows.push_back({list.backend + " device", "all memory", "the calls of the host"});
        } else {
            add_call_rows(list, values, rows);
        }
    }
    return rows;
}

std::vector<device_list> list_devices(const settings &values) {
    return {find_host_devices(),
            query_backend("cuda", device::create_cuda, values.device.cuda_library),
            query_backend("hip", device::create_hip, values.device.hip_library)};
}

std::vector<path_row> list_paths(const std::vector<device_list> &lists, device_path_set allowed) {
    std::vector<path_row> rows{{"host memory", "host memory", "the processor copies",
                                "the processor copies", "the conduit"}};
    for (device_list const &list : lists) {
        if (list.devices.empty()) {
            continue;
        }
        if (list.devices.front().details.host_loadable) {
            rows.push_back({list.backend + " device", "host memory, others of its kind",
                            "the processor copies", "the processor copies", "the conduit"});
        } else {
            add_gpu_rows(list, allowed, rows);
        }
    }
    for (std::size_t first = 0; first < lists.size(); ++first) {
        for (std::size_t second = first + 1; second < lists.size(); ++second) {
            if (!lists[first].devices.empty() && !lists[second].devices.empty() &&
                !lists[first].devices.front().details.host_loadable) {
                rows.push_back({lists[first].backend + " device", lists[second].backend + " device",
                                bounce, bounce, bounce_and_conduit});
            }
        }
    }
    return rows;
}

} // namespace diomp::info
