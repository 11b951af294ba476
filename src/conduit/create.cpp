// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/composite.h"
#include "conduit/conduit.h"
#include "conduit/gasnet/gasnet.h"
#include "conduit/gaspi/gaspi.h"
#include "conduit/shm/shm.h"
#include "conduit/tcp/tcp.h"
#include "conduit/ucx/ucx.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace diomp::conduit {

std::size_t control_bytes_per_rank() { return shm::control_bytes(); }

namespace {

using network_factory = result<std::unique_ptr<network>> (*)(launch::launcher &, const window &,
                                                             const conduit_options &, doorbell);
struct known_network {
    const char *name;
    network_factory create;
    bool is_built;
};

/// In the order in which "auto" prefers them.
constexpr known_network networks[] = {{"ucx", ucx::create, ucx::is_built},
                                      {"gasnet", gasnet::create, gasnet::is_built},
                                      {"gaspi", gaspi::create, gaspi::is_built},
                                      {"tcp", tcp::create, tcp::is_built}};

const known_network *find_network(const std::string &name) {
    auto const *const found =
        std::ranges::find_if(networks, [&](const auto &each) { return each.name == name; });
    return found == std::end(networks) ? nullptr : found;
}

/// The network whose own launcher started the job, else the first that this build has.
const known_network &choose_network(const launch::launcher &launcher) {
    if (const known_network *const native = find_network(launcher.name()); native != nullptr) {
        return *native;
    }
    return *std::ranges::find_if(networks, &known_network::is_built); // tcp is
}

} // namespace

result<std::unique_ptr<conduit>> create(const std::string &name, launch::launcher &launcher,
                                        const window &window, const conduit_options &options) {
    auto const &job = launcher.info();
    bool const all_near = job.local_size == job.size;
    const known_network *const forced = find_network(name);
    if (name != "auto" && name != "shm" && forced == nullptr) {
        return error(OMPX_ERR_ARG, fmt::format("there is no conduit '{}'", name),
                     "set DIOMP_CONDUIT to auto, shm, ucx, gasnet, gaspi or tcp");
    }
    if (name == "shm" && !all_near) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("{} of {} ranks are on other nodes, which shared memory "
                                 "does not reach",
                                 job.size - job.local_size, job.size),
                     "set DIOMP_CONDUIT=auto, or start all ranks on one node");
    }
    auto near = shm::create(launcher, window, options);
    DIOMP_TRY(near);
    if (job.size == 1 || (forced == nullptr && all_near)) {
        return near;
    }
    std::vector<bool> is_near(static_cast<std::size_t>(job.size), false);
    if (forced != nullptr) {
        is_near[job.rank.index()] = true;
    } else {
        for (world_rank const neighbour : job.local_ranks) {
            is_near[neighbour.index()] = true;
        }
    }
    const known_network &chosen = forced != nullptr ? *forced : choose_network(launcher);
    auto far = chosen.create(launcher, window, options,
                             [sleepers = near.value().get()] { sleepers->wake(); });
    DIOMP_TRY(far);
    return compose(near.take(), far.take(), std::move(is_near));
}

} // namespace diomp::conduit
