// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Selects the launcher by the environment.
#include "launch/gasnet/launcher.h"
#include "launch/gaspi/launcher.h"
#include "launch/internal/environment.h"
#include "launch/internal/foreign.h"
#include "launch/launch.h"
#include "launch/local/launcher.h"
#include "launch/pmi/launcher.h"
#include "launch/pmix/launcher.h"
#include "launch/singleton/launcher.h"

#include <cstdlib>

namespace diomp::launch {
namespace {

// Innermost launcher first: diomp-run may run inside a job of mpirun, and mpirun inside an
// allocation of Slurm. Null: there is none.
result<std::unique_ptr<launcher>> find_launcher(const environment &everything) {
    if (local::present(everything)) {
        auto joined = local::join(everything);
        local::forget_environment();
        mark_joined(everything);
        return joined;
    }
    if (gasnet::present(everything)) {
        auto joined = gasnet::join();
        gasnet::forget_environment();
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
    if (gaspi::present(lookup)) {
        return gaspi::join(lookup);
    }
    DIOMP_TRY(reject_foreign_launcher(lookup));
    return std::unique_ptr<launcher>();
}

} // namespace

result<std::unique_ptr<launcher>> connect() {
    environment const everything = [](const char *name) -> const char * {
        return std::getenv(name);
    };
    DIOMP_TRY(check_is_first_program(everything));
    auto found = find_launcher(everything);
    DIOMP_TRY(found);
    if (found.value() == nullptr) {
        return singleton::make();
    }
    auto const &job = found.value()->info();
    mark_process(job.rank.value(), job.size);
    return found;
}

void notify_process_exit(int exit_status) { gasnet::notify_process_exit(exit_status); }

} // namespace diomp::launch
