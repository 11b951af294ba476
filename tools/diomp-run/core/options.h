// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-run's command line.
#pragma once

#include "multihost/host_list.h"
#include "services/remote_devices.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace diomp::run {

enum class binding { automatic, core, none };

/// The hosts of a job, and how diomp-run is started there.
struct host_options {
    std::vector<host_slots> list; ///< empty: all ranks run on this machine
    bool oversubscribe = false;
    std::string remote_shell;  ///< from --rsh, DIOMP_RSH, or the default
    std::string agent_program; ///< from --agent-program, or empty
    std::string default_shell; ///< of the batch system that allocated the hosts, or empty
    std::string head_address;  ///< empty: all addresses of this host

    /// Returns the path of diomp-run on the hosts: by default that of this one.
    [[nodiscard]] std::string program() const;
};

struct run_options {
    int ranks = 0;                    ///< 0: the number of slots of the hosts
    std::vector<std::string> command; ///< program and its arguments
    binding bind = binding::automatic;
    int devices_per_rank = 0; ///< 0: from the environment
    bool tag_output = false;
    bool quiet = false;
    bool verbose = false;
    std::string output_dir; ///< empty: ranks' output goes through diomp-run
    /// From -x; no value: forwarded from diomp-run's environment.
    std::vector<std::pair<std::string, std::optional<std::string>>> environment;
    double timeout_s = 0; ///< 0: none
    host_options hosts;
    std::vector<device_host> device_hosts; ///< from --remote-devices
};

/// Exit statuses of diomp-run itself, as shells and timeout(1) use them.
inline constexpr int status_usage = 2;
inline constexpr int status_timeout = 124;
inline constexpr int status_cannot_execute = 126;
inline constexpr int status_not_found = 127;
inline constexpr int status_signal_base = 128;

/// Returns the options, or the exit status if there is nothing to run (help, version, misuse; the
/// text has been printed).
std::variant<run_options, int> parse_command_line(int argc, const char *const *argv);

} // namespace diomp::run
