// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-run's command line.
#pragma once

#include "host_list.h"
#include "remote_devices.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace diomp::run {

enum class binding { automatic, core, none };

struct run_options {
    int ranks = 0;                    ///< 0: as many as the hosts have slots
    std::vector<std::string> command; ///< program and its arguments
    binding bind = binding::automatic;
    int devices_per_rank = 0; ///< 0: as the environment says
    bool tag_output = false;
    bool quiet = false;
    bool verbose = false;
    std::string output_dir; ///< empty: ranks' output goes through diomp-run
    /// From -x; no value: forwarded as it is, which it would be anyway.
    std::vector<std::pair<std::string, std::optional<std::string>>> environment;
    double timeout_s = 0; ///< 0: none

    /// Empty: all ranks run here.
    std::vector<host_slots> hosts;
    bool oversubscribe = false;
    std::string remote_shell;  ///< from --rsh, DIOMP_RSH, or the default
    std::string agent_program; ///< diomp-run on the hosts; empty: the same path as here
    std::string head_address;  ///< empty: all of this host's

    std::vector<device_host> device_hosts; ///< from --remote-devices
};

/// Exit statuses that are diomp-run's own, as shells and timeout(1) use them.
inline constexpr int status_usage = 2;
inline constexpr int status_timeout = 124;
inline constexpr int status_cannot_execute = 126;
inline constexpr int status_not_found = 127;
inline constexpr int status_signal_base = 128;

/// Options to run with, or the exit status with which to end (help, version, misuse: text has been
/// printed).
std::variant<run_options, int> parse_command_line(int argc, const char *const *argv);

} // namespace diomp::run
