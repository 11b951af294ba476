// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "node_layout.h"

#include <fmt/core.h>
#include <hwloc.h>

#include <algorithm>
#include <memory>
#include <set>

namespace diomp::info {
namespace {

std::vector<int> numbers_of(hwloc_const_cpuset_t set) {
    std::vector<int> numbers;
    for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) {
        numbers.push_back(cpu);
    }
    return numbers;
}

template <typename Visit>
void for_each(hwloc_topology_t topology, hwloc_obj_type_t type, Visit &&visit) {
    for (hwloc_obj_t each = hwloc_get_next_obj_by_type(topology, type, nullptr); each != nullptr;
         each = hwloc_get_next_obj_by_type(topology, type, each)) {
        visit(*each);
    }
}

void collect(hwloc_topology_t topology, hwloc_const_cpuset_t usable, node_layout &into) {
    for_each(topology, HWLOC_OBJ_PACKAGE, [&](const hwloc_obj &found) {
        const char *const model =
            hwloc_obj_get_info_by_name(const_cast<hwloc_obj_t>(&found), "CPUModel");
        into.packages.push_back({static_cast<int>(found.os_index), model == nullptr ? "" : model});
    });
    for_each(topology, HWLOC_OBJ_NUMANODE, [&](const hwloc_obj &found) {
        into.numa_nodes.push_back({static_cast<int>(found.os_index),
                                   static_cast<std::size_t>(found.attr->numanode.local_memory),
                                   numbers_of(found.cpuset)});
    });
    for_each(topology, HWLOC_OBJ_CORE, [&](const hwloc_obj &found) {
        core each;
        hwloc_obj_t const above = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE,
                                                                 const_cast<hwloc_obj_t>(&found));
        each.package = above == nullptr ? -1 : static_cast<int>(above->os_index);
        each.numa_node =
            hwloc_bitmap_weight(found.nodeset) == 1 ? hwloc_bitmap_first(found.nodeset) : -1;
        each.cpus = numbers_of(found.cpuset);
        each.is_usable = hwloc_bitmap_intersects(found.cpuset, usable) != 0;
        into.cores.push_back(std::move(each));
    });
    std::ranges::sort(into.cores, {}, &core::cpus);
}

} // namespace

node_layout read_node_layout() {
    node_layout node;
    hwloc_topology_t topology = nullptr;
    if (hwloc_topology_init(&topology) != 0) {
        return node;
    }
    std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> const owner(
        topology, hwloc_topology_destroy);
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc_topology_load(topology) != 0) {
        return node;
    }
    std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> const usable(
        hwloc_bitmap_alloc_full(), hwloc_bitmap_free);
    hwloc_get_cpubind(topology, usable.get(), HWLOC_CPUBIND_PROCESS); // on failure: all cpus
    collect(topology, usable.get(), node);
    return node;
}

std::vector<rank_cores> bind_ranks(const node_layout &node, int ranks) {
    std::vector<const core *> usable;
    for (core const &each : node.cores) {
        if (each.is_usable) {
            usable.push_back(&each);
        }
    }
    auto const count = static_cast<std::size_t>(ranks);
    bool const bound = usable.size() >= count;
    std::vector<rank_cores> placed(count);
    for (std::size_t rank = 0; rank < count; ++rank) {
        std::size_t const begin = bound ? rank * usable.size() / count : 0;
        std::size_t const end = bound ? (rank + 1) * usable.size() / count : usable.size();
        rank_cores &mine = placed[rank];
        std::set<int> nodes;
        for (std::size_t at = begin; at < end; ++at) {
            nodes.insert(usable[at]->numa_node);
            if (bound) {
                mine.cpus.insert(mine.cpus.end(), usable[at]->cpus.begin(), usable[at]->cpus.end());
            }
        }
        mine.numa_node = nodes.size() == 1 ? *nodes.begin() : -1;
        std::ranges::sort(mine.cpus);
    }
    return placed;
}

std::string format_numbers(const std::vector<int> &numbers) {
    std::string text;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t end = i + 1;
        while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) {
            ++end;
        }
        text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
        if (end - i > 1) {
            text += fmt::format("-{}", numbers[end - 1]);
        }
        i = end;
    }
    return text;
}

} // namespace diomp::info
