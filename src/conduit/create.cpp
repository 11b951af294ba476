// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/composite.h"
#include "conduit/conduit.h"
#include "conduit/shm/shm.h"
#include "conduit/ucx/ucx.h"

#include <fmt/core.h>

namespace diomp::conduit {

std::size_t control_bytes_per_rank() { return shm::control_bytes(); }

result<std::unique_ptr<conduit>> create(const std::string &name, launch::launcher &launcher,
                                        const window &window, const conduit_options &options) {
    auto const &job = launcher.info();
    bool const all_near = job.local_size == job.size;
    if (name != "auto" && name != "shm" && name != "ucx") {
        return error(OMPX_ERR_ARG, fmt::format("there is no conduit '{}'", name),
                     "set DIOMP_CONDUIT to auto, shm or ucx");
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
    if (job.size == 1 || (name != "ucx" && all_near)) {
        return near;
    }
    std::vector<bool> is_near(static_cast<std::size_t>(job.size), false);
    if (name == "ucx") {
        is_near[job.rank.index()] = true;
    } else {
        for (world_rank const neighbour : job.local_ranks) {
            is_near[neighbour.index()] = true;
        }
    }
    auto far = ucx::create(launcher, window, options,
                           [sleepers = near.value().get()] { sleepers->wake(); });
    DIOMP_TRY(far);
    return compose(near.take(), far.take(), std::move(is_near));
}

} // namespace diomp::conduit
