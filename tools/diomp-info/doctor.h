// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-info --doctor: checks whether a job can run on this machine, and suggests remedies.
#pragma once

#include "config/settings.h"
#include "machine.h"

#include <string>
#include <vector>

namespace diomp::info {

enum class severity {
    fine,
    note, ///< a job can run, but slower or with less memory than possible
    bad   ///< a job cannot run
};

struct finding {
    std::string what;
    severity level = severity::fine;
    std::string detail;
    std::string remedy; ///< empty when fine
};

struct doctor_options {
    int ranks = 2; ///< ranks per node of the assumed job
    bool as_json = false;
};

/// Prints all findings. Returns the exit status: 1 if one of them is bad.
int run_doctor(const doctor_options &options);

/// Checks the system: memory files, addresses, limits, sockets, access to other processes.
std::vector<finding> examine_system(const settings &values, const machine &here, int ranks);
/// Checks the installation: libraries, launcher, compiler, and a job of two ranks.
std::vector<finding> examine_installation();

/// Runs as a rank of the job that --doctor starts: init, barrier, finalize. Returns the exit
/// status.
int run_probe_rank();

} // namespace diomp::info
