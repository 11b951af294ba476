// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "topology.h"

#include "base/sizes.h"
#include "machine.h"
#include "node_devices.h"
#include "node_layout.h"
#include "runtime/rank_devices.h"
#include "runtime_library.h"
#include "settings_page.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

namespace diomp::info {
namespace {

struct bound_rank {
    rank_cores where;
    std::vector<std::string> devices; ///< "cuda 1"
};

struct topology {
    node_layout node;
    std::vector<device_list> lists;
    std::vector<path_row> paths;
    std::vector<call_row> calls;
    int devices_per_rank = 1;
    std::vector<bound_rank> ranks; ///< empty if not requested
    /// [rank] Paths from rank 0 to the memory of each rank and its remote devices; empty outside a
    /// job.
    std::vector<std::string> rank_paths;
};

bool shared_by_ranks(const device_list &list) { return list.backend != "host"; }

/// Assigns devices to ranks as the runtime does for a program with images for all devices. The
/// runtime has OpenMP's device numbers; here devices are numbered in the order of the list.
result<std::vector<bound_rank>> bind_devices(const topology &details, settings values, int ranks) {
    values.device.per_rank = details.devices_per_rank;
    std::vector<runtime::openmp_device> devices;
    std::vector<std::string> names;
    std::map<std::string, std::vector<int>> nodes;
    for (device_list const &list : details.lists) {
        std::string const plugin = list.backend == "hip" ? "amdgpu" : list.backend;
        for (listed_device const &each : list.devices) {
            int const number = static_cast<int>(nodes[plugin].size());
            devices.push_back({plugin, number});
            names.push_back(fmt::format("{} {}", list.backend, number));
            nodes[plugin].push_back(each.details.numa_node);
        }
    }
    std::vector<bound_rank> bound;
    std::vector<int> rank_nodes;
    for (rank_cores const &where : bind_ranks(details.node, ranks)) {
        bound.push_back({where, {}});
        rank_nodes.push_back(where.numa_node);
    }
    auto const nodes_of = [&](const std::string &plugin) -> result<std::vector<int>> {
        return nodes[plugin];
    };
    auto rows = runtime::divide_devices(values, rank_nodes, devices, nodes_of);
    DIOMP_TRY(rows);
    for (std::size_t rank = 0; rank < bound.size(); ++rank) {
        for (int const device : rows.value()[rank]) {
            bound[rank].devices.push_back(names[static_cast<std::size_t>(device)]);
        }
    }
    return bound;
}

std::string node_text(int node) { return node < 0 ? "not known" : fmt::format("{}", node); }

void print_device(const device_list &list, std::size_t number) {
    listed_device const &each = list.devices[number];
    if (!each.failure.empty()) {
        fmt::print("           {} {}: {}\n", list.backend, number, each.failure);
        return;
    }
    std::vector<std::string> reached;
    for (std::size_t other = 0; other < list.devices.size(); ++other) {
        if (other != number && list.peer_access[number][other]) {
            reached.push_back(fmt::format("{}", other));
        }
    }
    fmt::print("           {} {}: {}, {}, {} ({} free), NUMA node {}; {}; reaches {}\n",
               list.backend, number, each.details.name, each.details.pci_bus_id,
               format_size(each.details.total_bytes), format_size(each.details.free_bytes),
               node_text(each.details.numa_node),
               each.details.memory_shares ? "shared by IPC" : "not shared by IPC",
               reached.empty() ? "no other" : fmt::format("{}", fmt::join(reached, ", ")));
}

void print_node(const topology &details) {
    machine const here = inspect_machine();
    fmt::print("machine    {}, Linux {}\n", here.host, here.kernel);
    for (package const &each : details.node.packages) {
        auto const cores = std::ranges::count(details.node.cores, each.number, &core::package);
        fmt::print("package    {}: {} core{}{}{}\n", each.number, cores, cores == 1 ? "" : "s",
                   each.model.empty() ? "" : ", ", each.model);
    }
    for (numa_node const &each : details.node.numa_nodes) {
        fmt::print("NUMA node  {}: {}, cpus {}\n", each.number, format_size(each.memory_bytes),
                   each.cpus.empty() ? "none" : format_numbers(each.cpus));
    }
    std::vector<int> usable;
    for (core const &each : details.node.cores) {
        if (each.is_usable) {
            usable.insert(usable.end(), each.cpus.begin(), each.cpus.end());
        }
    }
    std::ranges::sort(usable);
    fmt::print("usable     cpus {}\n", format_numbers(usable));
}

void print_text(const topology &details) {
    print_node(details);
    fmt::print("devices\n");
    for (device_list const &list : details.lists) {
        if (!list.missing.empty()) {
            fmt::print("           {}: none: {}\n", list.backend, list.missing);
        } else if (!shared_by_ranks(list)) {
            fmt::print("           {}: {} of each rank's own ({})\n", list.backend,
                       list.devices.size(), list.devices.front().details.name);
        } else {
            for (std::size_t number = 0; number < list.devices.size(); ++number) {
                print_device(list, number);
            }
        }
    }
    fmt::print("paths      (what devices, drivers and DIOMP_DEVICE_PATHS allow)\n  {:<12} {:<32} "
               "{:<34} {:<34} "
               "{}\n",
               "from", "to", "in one rank", "between ranks of the node", "between nodes");
    for (path_row const &row : details.paths) {
        fmt::print("  {:<12} {:<32} {:<34} {:<34} {}\n", row.from, row.to, row.in_rank,
                   row.between_ranks, row.between_nodes);
    }
    fmt::print("calls      (in target regions; with DIOMP_DEVICE_CALLS)\n");
    for (call_row const &row : details.calls) {
        fmt::print("  {:<12} {:<38} {}\n", row.from, row.to, row.path);
    }
    if (!details.ranks.empty()) {
        fmt::print("binding    {} rank{} on this node, {} per rank; the first is the default "
                   "device\n",
                   details.ranks.size(), details.ranks.size() == 1 ? "" : "s",
                   details.devices_per_rank);
    }
    for (std::size_t rank = 0; rank < details.ranks.size(); ++rank) {
        bound_rank const &each = details.ranks[rank];
        fmt::print("  rank {}: {} (cpus {}, NUMA node {})\n", rank,
                   each.devices.empty() ? "no device"
                                        : fmt::format("{}", fmt::join(each.devices, ", ")),
                   each.where.cpus.empty() ? "unbound" : format_numbers(each.where.cpus),
                   node_text(each.where.numa_node));
    }
    if (!details.rank_paths.empty()) {
        fmt::print("job        from rank 0 to the memory of\n");
    }
    for (std::size_t rank = 0; rank < details.rank_paths.size(); ++rank) {
        fmt::print("  rank {}: {}\n", rank, details.rank_paths[rank]);
    }
}

nlohmann::json node_json(const node_layout &node) {
    nlohmann::json json = {{"packages", nlohmann::json::array()},
                           {"numa_nodes", nlohmann::json::array()},
                           {"cores", nlohmann::json::array()}};
    for (package const &each : node.packages) {
        json["packages"].push_back({{"number", each.number}, {"model", each.model}});
    }
    for (numa_node const &each : node.numa_nodes) {
        json["numa_nodes"].push_back(
            {{"number", each.number}, {"memory_bytes", each.memory_bytes}, {"cpus", each.cpus}});
    }
    for (core const &each : node.cores) {
        json["cores"].push_back({{"package", each.package},
                                 {"numa_node", each.numa_node},
                                 {"cpus", each.cpus},
                                 {"usable", each.is_usable}});
    }
    return json;
}

nlohmann::json list_json(const device_list &list) {
    nlohmann::json json = {{"backend", list.backend},
                           {"missing", list.missing},
                           {"shared_by_ranks", shared_by_ranks(list)},
                           {"devices", nlohmann::json::array()},
                           {"reaches", list.peer_access}};
    for (listed_device const &each : list.devices) {
        json["devices"].push_back({{"name", each.details.name},
                                   {"failure", each.failure},
                                   {"pci_bus_id", each.details.pci_bus_id},
                                   {"numa_node", each.details.numa_node},
                                   {"total_bytes", each.details.total_bytes},
                                   {"free_bytes", each.details.free_bytes},
                                   {"memory_grows", each.details.memory_grows},
                                   {"memory_shares", each.details.memory_shares}});
    }
    return json;
}

void print_json(const topology &details) {
    nlohmann::json json = node_json(details.node);
    json["devices_per_rank"] = details.devices_per_rank;
    json["backends"] = nlohmann::json::array();
    for (device_list const &list : details.lists) {
        json["backends"].push_back(list_json(list));
    }
    json["paths"] = nlohmann::json::array();
    for (path_row const &row : details.paths) {
        json["paths"].push_back({{"from", row.from},
                                 {"to", row.to},
                                 {"in_rank", row.in_rank},
                                 {"between_ranks", row.between_ranks},
                                 {"between_nodes", row.between_nodes}});
    }
    json["calls"] = nlohmann::json::array();
    for (call_row const &row : details.calls) {
        json["calls"].push_back({{"from", row.from}, {"to", row.to}, {"path", row.path}});
    }
    json["ranks"] = nlohmann::json::array();
    for (bound_rank const &each : details.ranks) {
        json["ranks"].push_back({{"devices", each.devices},
                                 {"cpus", each.where.cpus},
                                 {"numa_node", each.where.numa_node}});
    }
    json["paths_from_rank_0"] = details.rank_paths;
    fmt::print("{}\n", json.dump(2));
}

int report_error(const error &why) {
    fmt::print(stderr, "diomp-info: {}\n", why.message());
    if (!why.remedy().empty()) {
        fmt::print(stderr, "  {}\n", why.remedy());
    }
    return 1;
}

int print_here(const topology_options &options, std::vector<std::string> rank_paths = {}) {
    auto environment = read_environment();
    if (!environment) {
        return report_error(environment.failure());
    }
    settings const &values = environment.value().values;
    topology found;
    found.rank_paths = std::move(rank_paths);
    found.node = read_node_layout();
    found.lists = list_devices(values);
    found.paths = list_paths(found.lists, values.offload.paths);
    found.calls = list_calls(found.lists, values.offload);
    found.devices_per_rank =
        options.devices_per_rank > 0 ? options.devices_per_rank : values.device.per_rank;
    if (options.ranks > 0) {
        auto bound = bind_devices(found, values, options.ranks);
        if (!bound) {
            return report_error(bound.failure());
        }
        found.ranks = bound.take();
    }
    if (options.as_json) {
        print_json(found);
    } else {
        print_text(found);
    }
    std::fflush(stdout);
    return 0;
}

/// A rank that nothing was sent to has the path that the conduit plans for it.
std::vector<std::string> paths_from_here(const runtime_library &runtime) {
    std::vector<std::string> paths;
    for (int rank = 0; rank < runtime.num_ranks(); ++rank) {
        std::array<char, 4096> text{};
        bool const is_known = runtime.path_info(rank, text.data(), text.size()) == OMPX_SUCCESS;
        paths.emplace_back(is_known ? text.data() : "unknown");
    }
    return paths;
}

} // namespace

int print_topology(topology_options options) {
    if (!inside_job()) {
        return print_here(options);
    }
    auto library = open_runtime();
    if (!library) {
        return report_error(library.failure());
    }
    runtime_library const &runtime = library.value();
    if (runtime.init() != OMPX_SUCCESS) {
        return 1; // the runtime has printed the reason
    }
    int status = 0;
    if (runtime.rank() == 0) {
        options.ranks = options.ranks > 0 ? options.ranks : runtime.num_local_ranks();
        status = print_here(options, paths_from_here(runtime));
    }
    return runtime.finalize() == OMPX_SUCCESS ? status : 1;
}

} // namespace diomp::info
