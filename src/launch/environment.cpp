// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/internal/environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace diomp::launch {
namespace {

/// A launcher whose variables stay in the environment of its ranks, since other libraries in the
/// rank (an MPI) may read them later. The values of `id_variables` differ between launches;
/// variables that start with one of `prefixes` are hidden with them.
struct persistent_launch {
    std::string_view tag;
    std::vector<const char *> id_variables;
    std::vector<std::string_view> prefixes;
};

const std::vector<persistent_launch> &persistent_launches() {
    static auto const *const all = new std::vector<persistent_launch>{
        // used during exit
        // The namespace alone may repeat: Open MPI 4 derives 16 bits of it from its process id.
        // The server's address distinguishes such launches.
        {"pmix",
         {"PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_URI2", "PMIX_SERVER_URI21",
          "PMIX_SERVER_TMPDIR"},
         {"PMIX_", "OMPI_COMM_WORLD_", "OMPI_MCA_orte_hnp_uri"}},
        {"slurm",
         {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_TASK_PID"},
         {"SLURM_PROCID", "SLURM_STEP"}},
    };
    return *all;
}

/// "tag:value,value,..." of one launch; empty if none of its variables is set.
std::string id_of_launch(const persistent_launch &launch, const environment &lookup) {
    std::string name(launch.tag);
    char separator = ':';
    bool any = false;
    for (const char *const variable : launch.id_variables) {
        const char *const value = lookup(variable);
        any = any || value != nullptr;
        name += separator;
        name += value != nullptr ? value : "";
        separator = ',';
    }
    return any ? name : std::string();
}

/// "pid:start", which is unique on this machine and does not change at exec; empty if the system
/// does not provide it. Start: the 22nd field of stat, in ticks.
std::string id_of_process() {
    constexpr int fields_before_start = 19; // after the command, which is in parentheses
    std::ifstream file("/proc/self/stat");
    std::string line;
    std::getline(file, line);
    auto const command_end = line.rfind(')');
    if (command_end == std::string::npos) {
        return {};
    }
    std::istringstream fields(line.substr(command_end + 1));
    std::string field;
    for (int i = 0; i <= fields_before_start; ++i) {
        fields >> field;
    }
    return fields ? fmt::format("{}:{}", ::getpid(), field) : std::string();
}

} // namespace

std::string launch_mark(const environment &lookup) {
    std::string mark;
    for (const persistent_launch &launch : persistent_launches()) {
        std::string const name = id_of_launch(launch, lookup);
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
    for (const persistent_launch &launch : persistent_launches()) {
        std::string const name = id_of_launch(launch, lookup);
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

void mark_process(int rank, int size) {
    std::string const own = id_of_process();
    if (own.empty()) {
        unsetenv(process_variable);
    } else {
        setenv(process_variable, fmt::format("{} {} {}", own, rank, size).c_str(), 1);
    }
}

status check_is_first_program(const environment &lookup) {
    const char *const mark = lookup(process_variable);
    if (mark == nullptr) {
        return {};
    }
    std::istringstream words(mark);
    std::string process;
    std::string rank;
    std::string size;
    words >> process >> rank >> size;
    if (!words || process != id_of_process()) {
        return {}; // set by an ancestor
    }
    return error(OMPX_ERR_STATE,
                 fmt::format("this process has joined its job already, as rank {} of {}, and has "
                             "then executed another program: a process joins once",
                             rank, size),
                 "call exec before the runtime starts, in a program that is not linked with DiOMP "
                 "(a script, env), or start the second program with fork and exec, where it is a "
                 "world of its own");
}

} // namespace diomp::launch
