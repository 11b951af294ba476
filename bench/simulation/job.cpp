// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "job.h"

#include "base/lazy_array.h"
#include "charged_copies.h"

#include <cstdint>
#include <new>
#include <simgrid/s4u/Host.hpp>
#include <stdexcept>
#include <sys/mman.h>
#include <vector>

namespace diomp::simulation {
namespace {

/// Blocks of groups, stage buffers and rendezvous buffers of a rank; most of it is never touched.
constexpr std::size_t slot_bytes = std::size_t{32} << 20;

messaging::engine_options waits() {
    return {.spin_count = 1,
            .timeout_s = 0,
            .warn_after_s = 0,
            .progress_thread = false,
            .is_oversubscribed = false};
}

/// What models of the library see of the machine.
coll::network_costs costs_of(const machine &hardware, std::span<simgrid::s4u::Host *const> hosts) {
    constexpr double us_per_s = 1e6;
    std::vector<simgrid::s4u::Link *> links;
    double latency_s = 0;
    hosts.front()->route_to(hosts.back(), links, &latency_s);
    return {.latency_us = latency_s * us_per_s,
            .overhead_us = hardware.overhead_s * us_per_s,
            .flag_us = hardware.flag_s * us_per_s,
            .line_us = hardware.line_s * us_per_s,
            .copy_us = us_per_s / hardware.copy_bandwidth,
            .combine_us = us_per_s / hardware.copy_bandwidth,
            .byte_us = us_per_s / hardware.link_bandwidth};
}

/// In one process every address is the same memory in all ranks.
coll::options collective_options(const job_options &options, const coll::network_costs &costs) {
    coll::options chosen;
    chosen.costs = &costs;
    chosen.arena_span = options.in_arena ? SIZE_MAX : 0;
    chosen.slicing = options.slicing;
    return chosen;
}

} // namespace

reserved_memory::reserved_memory(std::size_t nbytes) : nbytes_(nbytes) {
    void *const mapped = ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        throw std::bad_alloc();
    }
    data_ = static_cast<std::byte *>(mapped);
}

reserved_memory::~reserved_memory() { ::munmap(data_, nbytes_); }

std::optional<std::uint64_t> slot_workspace::allocate(std::size_t nbytes,
                                                      std::size_t /*min_free_bytes*/) {
    constexpr std::size_t alignment = 4096;
    std::size_t const begin = (used_ + alignment - 1) / alignment * alignment;
    if (nbytes > nbytes_ || begin > nbytes_ - nbytes) {
        return std::nullopt;
    }
    used_ = begin + nbytes;
    return begin;
}

job::job(const job_options &options, std::span<simgrid::s4u::Host *const> hosts)
    : options_(options),
      fabric_{.hardware = options.hardware, .moves_data = options.moves_data, .ports = {}},
      slots_(slot_bytes *
             static_cast<std::size_t>(options.hardware.num_nodes * options.simulated_per_node())),
      costs_(costs_of(options.hardware, hosts)), collectives_(collective_options(options, costs_)) {
    int const num_ranks = options.hardware.num_nodes * options.simulated_per_node();
    for (int number = 0; number < num_ranks; ++number) {
        node_of_.push_back(number / options.simulated_per_node());
        fabric_.ports.push_back(
            std::make_unique<port>(hosts[static_cast<std::size_t>(node_of_.back())]));
    }
    charge_copies({.seconds_per_byte = options.all_ranks ? 1 / options.hardware.copy_bandwidth : 0,
                   .moves_data = options.moves_data,
                   .slots = {slots_.data(), slots_.nbytes()}});
    group::node_map const nodes(node_of_);
    for (int number = 0; number < num_ranks; ++number) {
        add_rank(number, nodes);
    }
}

job::~job() = default;

void job::add_rank(int number, const group::node_map &nodes) {
    auto const num_ranks = fabric_.ports.size();
    lazy_array<std::byte *> direct_bases(num_ranks);
    int const first = number / options_.simulated_per_node() * options_.simulated_per_node();
    for (int peer = first; peer < first + options_.simulated_per_node(); ++peer) {
        auto const index = static_cast<std::size_t>(peer);
        direct_bases[index] = slots_.data() + index * slot_bytes;
    }
    world_rank const self(number);
    rank made;
    made.conduit = std::make_unique<transport::conduit>(self, std::make_shared<node>(fabric_, self),
                                                        std::make_shared<network>(fabric_, self),
                                                        std::move(direct_bases));
    made.engine = std::make_unique<messaging::engine>(*made.conduit, waits());
    made.space = std::make_unique<slot_workspace>(slot_bytes);
    made.registry = std::make_unique<group::group_registry>(*made.engine, *made.space, self,
                                                            static_cast<int>(num_ranks));
    if (status created = made.registry->create_world(nodes); !created) {
        throw std::runtime_error(created.failure().message());
    }
    ranks_.push_back(std::move(made));
}

} // namespace diomp::simulation
