// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-info --doctor: can a job run here, and if not, what is to be done?
#pragma once

#include "base/settings.h"
#include "machine.h"

#include <string>
#include <vector>

namespace diomp::info {

enum class verdict {
    fine,
    note, ///< a job runs, but slower or smaller than it could
    bad   ///< a job cannot run
};

struct finding {
    std::string what;
    verdict is = verdict::fine;
    std::string detail;
    std::string remedy; ///< empty when fine
};

struct doctor_options {
    int ranks = 2; ///< of the job that is thought of
    bool as_json = false;
};

/// Prints all findings; exit status 1 if one of them is bad.
int run_doctor(const doctor_options &options);

/// The system: memory files, addresses, limits, sockets, access to other processes.
std::vector<finding> examine_system(const settings &values, const machine &here, int ranks);
/// The installation: libraries, launcher, compiler, and a job of two ranks.
std::vector<finding> examine_installation();

/// Run as a rank of the doctor's own job: starts, meets the other ranks, ends. Exit status.
int run_probe_rank();

} // namespace diomp::info
