// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Picks the launcher from the environment.
#include "launch/environment.h"
#include "launch/foreign.h"
#include "launch/launch.h"
#include "launch/local/launcher.h"
#include "launch/pmi/launcher.h"
#include "launch/pmix/launcher.h"
#include "launch/singleton/launcher.h"

#include <cstdlib>

namespace diomp::launch {

// The closest launcher first: diomp-run may run inside a job of mpirun, and mpirun inside an
// allocation of Slurm.
result<std::unique_ptr<launcher>> connect() {
    environment const everything = [](const char *name) -> const char * {
        return std::getenv(name);
    };
    if (local::present(everything)) {
        auto joined = local::join(everything);
        local::forget_environment();
        mark_joined(everything);
        return joined;
    }
    environment const lookup = without_inherited(everything);
    if (pmix::present(lookup)) {
        auto joined = pmix::join(lookup);
        mark_joined(everything);
        return joined;
    }
    if (pmi::present(lookup)) {
        auto joined = pmi::join(lookup);
        pmi::forget_environment();
        mark_joined(everything);
        return joined;
    }
    DIOMP_TRY(reject_foreign_launcher(lookup));
    return singleton::make();
}

} // namespace diomp::launch
