// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every DIOMP_* variable: one table from which the parser, diomp-info and the documentation come.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp {

enum class log_level { off, error, warn, info, debug };
enum class error_policy { abort, give_back };
enum class check_level { none, allocations };
enum class stats_mode { off, summary, callsites };
/// Who makes the collectives of groups of GPUs.
enum class ccl_choice { automatic, native, nccl, rccl };

/// Which connections are encrypted after their handshake (docs/security.md).
enum class encryption : std::uint8_t { off, control, all };

/// Ways of transfers with GPU memory, as a set. What none of them allows bounces through the host.
enum class device_ways : unsigned {
    none = 0,
    peer = 1,    ///< from device to device of one rank
    ipc = 2,     ///< into memory of other ranks of the node
    network = 4, ///< to other nodes, by a network that reads and writes it
    all = peer | ipc | network,
};
[[nodiscard]] constexpr bool allows(device_ways set, device_ways way) {
    return (static_cast<unsigned>(set) & static_cast<unsigned>(way)) != 0;
}

/// What core files have of global memory.
struct core_content {
    std::size_t own_bytes = std::size_t{16} << 20; ///< of this rank's allocations, at most
    bool whole_window = false;                     ///< everything of all ranks of the node
    bool operator==(const core_content &) const = default;
};

struct settings {
    std::size_t segment_size_bytes = 0; ///< 0: chosen from the node's memory and ranks
    /// Of each device; 0: chosen as that.
    std::size_t device_segment_size_bytes = 0;
    device_ways device_paths = device_ways::all;
    std::size_t device_pin_threshold_bytes = std::size_t{1} << 20;
    int max_active_streams = 32;
    ccl_choice ccl = ccl_choice::automatic;
    std::optional<std::size_t> device_direct_threshold_bytes; ///< none: chosen
    std::uint64_t segment_base = 0;                           ///< 0: chosen for this build
    std::size_t stream_threshold_bytes = 0;                   ///< 0: chosen from the caches
    int spin_count = -1;                                      ///< -1: 2000
    double timeout_s = 0; ///< 0: wait without limit (with a warning)
    double warn_after_s = 60;
    check_level check = check_level::none;
    error_policy errors = error_policy::abort;
    core_content core;
    bool stacks = true; ///< shown when the job has waited in vain
    log_level log = log_level::warn;
    stats_mode stats = stats_mode::off;
    std::string stats_file; ///< empty: standard error
    std::string trace_file; ///< empty: none
    std::string conduit = "auto";
    std::string network = "auto";
    bool cross_memory_attach = true;
    int node_size = 0;                     ///< 0: as the launcher says
    int ucx_workers = 0;                   ///< 0: chosen from the cores
    std::string tcp_interfaces;            ///< empty: all
    std::size_t tcp_send_buffer_bytes = 0; ///< 0: chosen by the conduit
    std::string tcp_congestion = "auto";
    encryption encrypt = encryption::control;
    std::string network_rma = "auto";
    std::string network_device_memory = "auto";
    std::string network_atomics = "messages";
    int devices_per_rank = 1;
    /// [device] -1: not known. None: asked of the vendor's library.
    std::optional<std::vector<int>> device_numa_nodes;
    std::string device_wait = "auto"; ///< for libomptarget, which reads it itself
    std::string cuda_library;         ///< empty: under its usual name
    std::string hip_library;
    std::string remote_devices; ///< empty: none
    bool local_devices = true;
    std::size_t split_threshold_bytes = 0; ///< 0: chosen here
    bool posted_regions = true;
    std::string nccl_library;
    std::string rccl_library;
};

/// One row of the table. `parse` stores into a settings object or says why it cannot.
struct setting_row {
    const char *name;
    const char *type; ///< "size", "seconds", "integer", "address", "on|off", or the list of words
    const char *default_value; ///< as the user would write it
    const char *help;
    status (*parse)(settings &into, const std::string &text);
    std::string (*show)(const settings &from);
};

std::span<const setting_row> setting_rows();

/// Reads the environment. Malformed values are errors that name the variable, its value and what is
/// allowed. Unknown DIOMP_* variables are returned in `unknown` so that the caller can report them.
result<settings> read_settings(std::vector<std::string> &unknown,
                               const std::function<const char *(const char *)> &lookup);
result<settings> read_settings(std::vector<std::string> &unknown);

/// "4096", "64K", "16M", "2G", "1T" (powers of 1024, optional "iB" or "B"). Overflow is an error.
result<std::size_t> parse_size(const std::string &text);
/// "64 KiB", "1.5 GiB": for messages.
std::string format_size(std::size_t size_bytes);

} // namespace diomp
