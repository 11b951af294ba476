// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "machine.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace diomp::simulation {
namespace {

/// Nodes of a leaf switch, or of a router's row.
unsigned leaf_size(unsigned num_nodes) {
    unsigned const root = std::bit_ceil(num_nodes);
    return std::max(1U, 1U << (static_cast<unsigned>(std::bit_width(root)) / 2));
}

struct shape {
    const char *topology;
    std::string parameters;
    unsigned num_nodes;
};

/// Two levels with full bisection bandwidth: each leaf switch has as many links up as nodes.
shape fat_tree(unsigned num_nodes) {
    unsigned const leaf = leaf_size(num_nodes);
    unsigned const leaves = std::max(1U, (num_nodes + leaf - 1) / leaf);
    return {"FAT_TREE", fmt::format("2;{0},{1};1,{0};1,1", leaf, leaves), leaf * leaves};
}

/// Groups of routers with two nodes each: 4 chassis of 4 routers.
shape dragonfly(unsigned num_nodes) {
    constexpr unsigned chassis = 4;
    constexpr unsigned routers = 4;
    constexpr unsigned nodes = 2;
    constexpr unsigned group = chassis * routers * nodes;
    unsigned const groups = std::max(2U, (num_nodes + group - 1) / group);
    return {"DRAGONFLY", fmt::format("{},2;{},3;{},2;{}", groups, chassis, routers, nodes),
            group * groups};
}

} // namespace

std::string platform_xml(const machine &of) {
    auto const num_nodes = static_cast<unsigned>(of.num_nodes);
    shape const made = of.topology == "dragonfly" ? dragonfly(num_nodes) : fat_tree(num_nodes);
    return fmt::format(
        R"(<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="world" routing="Full">
    <cluster id="machine" prefix="node-" radical="0-{}" suffix="" speed="1Gf" core="{}"
             bw="{}Bps" lat="{}s" loopback_bw="{}Bps" loopback_lat="{}s"
             topology="{}" topo_parameters="{}" sharing_policy="SPLITDUPLEX"/>
  </zone>
</platform>
)",
        made.num_nodes - 1, std::max(1, of.ranks_per_node), of.link_bandwidth, of.link_latency_s,
        of.copy_bandwidth, of.loopback_latency_s, made.topology, made.parameters);
}

std::string smpi_overhead(const machine &of) {
    return fmt::format("0:{}:{}", of.overhead_s, of.overhead_s_per_byte);
}

} // namespace diomp::simulation
