// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/internal/foreign.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

namespace diomp::launch {
namespace {

struct foreign_launcher {
    const char *name;
    const char *rank_variable;
    const char *size_variable; ///< nullptr: the size is not in the environment
    const char *missing;
    const char *remedy;
};

// The most specific first: under srun the variables of a PMI exist beside Slurm's.
constexpr std::array<foreign_launcher, 6> known{{
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "PMIX_RANK and PMIX_NAMESPACE are missing",
     "use an mpirun that supports PMIx (Open MPI 3 or newer)"},
    {"a PMI launcher", "PMI_RANK", "PMI_SIZE", "PMI_FD is not set",
     "use mpiexec.hydra, srun --mpi=pmix or srun --mpi=pmi2"},
    {"a PMI launcher", "PMI_ID", nullptr, "DiOMP does not support PMI_PORT",
     "use mpiexec.hydra without -pmi-port"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "it was started without a PMI",
     "use srun --mpi=pmix or srun --mpi=pmi2 (srun --mpi=list shows which there are)"},
    {"a PMIx launcher", "PMIX_RANK", nullptr, "PMIX_NAMESPACE is missing",
     "programs between the launcher and this one must pass the environment on"},
    {"gaspi_run", "GASPI_RANK", "GASPI_NRANKS", "this build has no GPI-2",
     "build with -DDIOMP_GPI2=ON where GPI-2 1.6 or newer is installed"},
}};

} // namespace

status reject_foreign_launcher(const environment &lookup) {
    for (const foreign_launcher &launcher : known) {
        const char *const rank = lookup(launcher.rank_variable);
        if (rank == nullptr) {
            continue;
        }
        const char *const size =
            launcher.size_variable != nullptr ? lookup(launcher.size_variable) : nullptr;
        if (launcher.size_variable != nullptr &&
            (size == nullptr || std::strtol(size, nullptr, 10) <= 1)) {
            continue; // one process; another launcher inside it may have started more
        }
        return error(
            OMPX_ERR_UNSUPPORTED,
            fmt::format("this process is number {} of {} started by {} ({}={}), but {}; each "
                        "process would be a world of its own",
                        rank, size != nullptr ? size : "several", launcher.name,
                        launcher.rank_variable, rank, launcher.missing),
            fmt::format("{}, or diomp-run -n N on one machine, or unset {} for a world of one rank",
                        launcher.remedy, launcher.rank_variable));
    }
    return {};
}

} // namespace diomp::launch
