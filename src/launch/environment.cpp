// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/environment.h"

#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace diomp::launch {
namespace {

/// A launcher whose variables stay in the environment of its ranks, since other libraries in the
/// rank (an MPI) may read them later. `naming` differ from launch to launch; names that start with
/// one of `prefixes` are hidden with them.
struct lasting_launch {
    std::string_view tag;
    std::vector<const char *> naming;
    std::vector<std::string_view> prefixes;
};

const std::vector<lasting_launch> &lasting_launches() {
    static const std::vector<lasting_launch> all{
        // The namespace alone may come again: Open MPI 4 makes 16 bits of it from its process
        // number. The server's address tells such launches apart.
        {"pmix",
         {"PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_URI2", "PMIX_SERVER_URI21",
          "PMIX_SERVER_TMPDIR"},
         {"PMIX_", "OMPI_COMM_WORLD_", "OMPI_MCA_orte_hnp_uri"}},
        {"slurm",
         {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_TASK_PID"},
         {"SLURM_PROCID", "SLURM_STEP"}},
    };
    return all;
}

/// "tag:value,value,..." of one launch; empty if its rank variable is not there.
std::string name_of(const lasting_launch &launch, const environment &lookup) {
    std::string name(launch.tag);
    char separator = ':';
    bool any = false;
    for (const char *const variable : launch.naming) {
        const char *const value = lookup(variable);
        any = any || value != nullptr;
        name += separator;
        name += value != nullptr ? value : "";
        separator = ',';
    }
    return any ? name : std::string();
}

} // namespace

std::string launch_mark(const environment &lookup) {
    std::string mark;
    for (const lasting_launch &launch : lasting_launches()) {
        std::string const name = name_of(launch, lookup);
        if (!name.empty()) {
            mark += '|' + name + '|';
        }
    }
    return mark;
}

environment without_inherited(environment lookup) {
    const char *const mark = lookup(joined_variable);
    if (mark == nullptr) {
        return lookup;
    }
    std::vector<std::string_view> hidden;
    for (const lasting_launch &launch : lasting_launches()) {
        std::string const name = name_of(launch, lookup);
        if (!name.empty() &&
            std::string_view(mark).find('|' + name + '|') != std::string_view::npos) {
            hidden.insert(hidden.end(), launch.prefixes.begin(), launch.prefixes.end());
        }
    }
    return [lookup = std::move(lookup), hidden = std::move(hidden)](const char *variable) {
        for (std::string_view const prefix : hidden) {
            if (std::string_view(variable).starts_with(prefix)) {
                return static_cast<const char *>(nullptr);
            }
        }
        return lookup(variable);
    };
}

void mark_joined(const environment &lookup) {
    std::string const mark = launch_mark(lookup);
    if (mark.empty()) {
        unsetenv(joined_variable);
    } else {
        setenv(joined_variable, mark.c_str(), 1);
    }
}

} // namespace diomp::launch
