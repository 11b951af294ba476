// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/create.h"

#include "launch/launch.h"
#include "transport/arena.h"
#include "transport/conduit.h"
#include "transport/gasnet/gasnet.h"
#include "transport/gaspi/gaspi.h"
#include "transport/registration.h"
#include "transport/shm/shm.h"
#include "transport/tcp/tcp.h"
#include "transport/ucx/ucx.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace diomp::transport {

std::size_t control_bytes_per_rank() { return shm::control_bytes(); }

namespace {

/// Key at the launcher of the network that rank 0 has chosen for all ranks.
constexpr const char *choice_key = "network";

using network_factory = result<std::unique_ptr<network>> (*)(launch::launcher &, const arena &,
                                                             const conduit_options &, doorbell);
struct known_network {
    const char *name;
    network_factory create;
    bool is_built;
    bool encrypts = false;
};

/// In the order of preference of "auto" if there is an adapter for them.
constexpr known_network networks[] = {{"ucx", ucx::create, ucx::is_built},
                                      {"gasnet", gasnet::create, gasnet::is_built},
                                      {"gaspi", gaspi::create, gaspi::is_built},
                                      {"tcp", tcp::create, tcp::is_built, true}};

const known_network *find_network(const std::string &name) {
    auto const *const found =
        std::ranges::find_if(networks, [&](const auto &each) { return each.name == name; });
    return found == std::end(networks) ? nullptr : found;
}

/// Over TCP, the tcp conduit is faster than these libraries.
const char *best_network_here(bool encrypts) {
    return has_rdma_adapter() && !encrypts
               ? std::ranges::find_if(networks, &known_network::is_built)->name
               : "tcp";
}

/// The network whose own launcher started the job, else the best one on the host of rank 0, which
/// decides for all ranks: they must agree. Collective.
result<std::string> choose_network(launch::launcher &launcher, bool encrypts) {
    if (find_network(launcher.name()) != nullptr) {
        return std::string(launcher.name());
    }
    if (launcher.info().rank == world_rank(0)) {
        DIOMP_TRY(launcher.put(choice_key, best_network_here(encrypts)));
    }
    DIOMP_TRY(launcher.fence());
    return launcher.get(world_rank(0), choice_key);
}

/// Resolves options.network. Collective.
result<const known_network *> resolve_network(const conduit_options &options,
                                              launch::launcher &launcher) {
    std::string name = options.network;
    if (name == "auto") {
        auto chosen = choose_network(launcher, options.encrypts);
        DIOMP_TRY(chosen);
        name = chosen.take();
    }
    const known_network *const found = find_network(name);
    if (found == nullptr) {
        return error(OMPX_ERR_ARG, fmt::format("there is no network '{}'", name),
                     "set DIOMP_NETWORK to auto, ucx, gasnet, gaspi or tcp");
    }
    return found;
}

} // namespace

bool is_forced_network(const std::string &name) { return find_network(name) != nullptr; }

result<std::unique_ptr<conduit>> create(const std::string &name, launch::launcher &launcher,
                                        const arena &arena, const conduit_options &options) {
    auto const &job = launcher.info();
    bool const all_intra_node = job.local_size == job.size;
    const known_network *chosen = find_network(name);
    bool const is_forced = is_forced_network(name);
    if (name != "auto" && name != "shm" && !is_forced) {
        return error(OMPX_ERR_ARG, fmt::format("there is no conduit '{}'", name),
                     "set DIOMP_CONDUIT to auto, shm, ucx, gasnet, gaspi or tcp");
    }
    if (name == "shm" && !all_intra_node) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("{} of {} ranks are on other nodes, which shared memory "
                                 "does not reach",
                                 job.size - job.local_size, job.size),
                     "set DIOMP_CONDUIT=auto, or start all ranks on one node");
    }
    if (options.native_atomics && job.size > 1 && name != "ucx") {
        // Operations through a network for some ranks and by processors for others would not be
        // atomic with respect to each other.
        return error(
            OMPX_ERR_UNSUPPORTED,
            fmt::format("the conduit '{}' has no native atomic operations for all ranks", name),
            "DIOMP_NETWORK_ATOMICS=native needs DIOMP_CONDUIT=ucx");
    }
    auto made = shm::create(launcher, arena, options.cross_memory_attach);
    DIOMP_TRY(made);
    std::shared_ptr<node_transport> node = made.take();
    lazy_array<std::byte *> direct_bases(static_cast<std::size_t>(job.size));
    int num_direct = job.local_size;
    if (is_forced && job.size > 1) {
        direct_bases[job.rank.index()] = arena.slot(job.rank);
        num_direct = 1;
    } else {
        for (world_rank const neighbour : job.local_ranks) {
            direct_bases[neighbour.index()] = arena.slot(neighbour);
        }
    }
    if (job.size == 1 || (!is_forced && all_intra_node)) {
        return std::make_unique<conduit>(job.rank, std::move(node), nullptr,
                                         std::move(direct_bases));
    }
    if (!is_forced) {
        auto resolved = resolve_network(options, launcher);
        DIOMP_TRY(resolved);
        chosen = resolved.value();
    }
    if (options.encrypts && !chosen->encrypts) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("the network '{}' does not encrypt its data", chosen->name),
                     "DIOMP_ENCRYPT=all needs tcp: set DIOMP_CONDUIT and DIOMP_NETWORK to auto or "
                     "tcp");
    }
    conduit_options network_options = options;
    network_options.num_network_peers = job.size - num_direct;
    auto inter_node =
        chosen->create(launcher, arena, network_options, [waker = node.get()] { waker->wake(); });
    DIOMP_TRY(inter_node);
    return std::make_unique<conduit>(job.rank, std::move(node), inter_node.take(),
                                     std::move(direct_bases));
}

} // namespace diomp::transport
