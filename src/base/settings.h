// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All DIOMP_* variables: one table from which the parser, diomp-info and the documentation are
// made.
#pragma once

#include "base/function_ref.h"
#include "base/log_levels.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp {

enum class error_policy { abort, return_status };
enum class check_level { none, allocations };
enum class stats_mode { off, summary, callsites };
/// Implementation of collectives of groups of GPUs.
enum class ccl_choice { automatic, native, nccl, rccl };

/// Connections that are encrypted after their handshake (docs/security.md).
enum class encryption : std::uint8_t { off, control, all };

/// Paths of transfers with GPU memory, as a set. Transfers that no path of the set allows use host
/// memory (bounce).
enum class device_path_set : unsigned {
    none = 0,
    peer = 1,    ///< between devices of one rank
    ipc = 2,     ///< to memory of other ranks of the node
    network = 4, ///< to other nodes, by a network that accesses GPU memory
    all = peer | ipc | network,
};
[[nodiscard]] constexpr bool allows(device_path_set set, device_path_set path) {
    return (static_cast<unsigned>(set) & static_cast<unsigned>(path)) != 0;
}

/// Global memory that core files include.
struct core_content {
    std::size_t own_bytes = std::size_t{16} << 20; ///< of this rank's allocations, at most
    bool whole_arena = false;                      ///< all global memory of all ranks of the node
    bool operator==(const core_content &) const = default;
};

struct settings {
    std::size_t segment_size_bytes = 0; ///< 0: chosen from the node's memory and ranks
    /// Per device; 0: chosen from memory and ranks.
    std::size_t device_segment_size_bytes = 0;
    device_path_set device_paths = device_path_set::all;
    std::size_t device_pin_threshold_bytes = std::size_t{1} << 20;
    int max_active_streams = 32;
    ccl_choice ccl = ccl_choice::automatic;
    std::optional<std::size_t> device_direct_threshold_bytes; ///< none: automatic
    std::uint64_t segment_base = 0;                           ///< 0: chosen for this build
    std::size_t stream_threshold_bytes = 0;                   ///< 0: chosen from the caches
    int spin_count = -1;                                      ///< -1: 2000
    double timeout_s = 0; ///< 0: wait without limit (with a warning)
    double warn_after_s = 60;
    check_level check = check_level::none;
    error_policy errors = error_policy::abort;
    core_content core;
    bool stacks = true; ///< call stacks are printed when the job has timed out
    log_levels log;
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
    /// [device] -1: unknown. None: queried from the vendor's library.
    std::optional<std::vector<int>> device_numa_nodes;
    std::string device_wait = "auto"; ///< used by libomptarget, which reads it itself
    std::string cuda_library;         ///< empty: the usual name
    std::string hip_library;
    std::string remote_devices; ///< empty: none
    bool local_devices = true;
    std::size_t split_threshold_bytes = 0; ///< 0: default
    bool posted_regions = true;
    std::string nccl_library;
    std::string rccl_library;
};

/// One row of the table. `parse` stores into a settings object or returns the reason why it cannot.
struct setting_row {
    const char *name;
    const char *type; ///< "size", "seconds", "integer", "address", "on|off", or the list of words
    const char *default_value; ///< in the form of the variable
    const char *help;
    status (*parse)(settings &into, const std::string &text);
    std::string (*show)(const settings &from);
};

std::span<const setting_row> setting_rows();

/// Reads the environment. Malformed values are errors that name the variable, its value and the
/// allowed values. Unknown DIOMP_* variables are returned in `unknown` so that the caller can
/// report them.
result<settings> read_settings(std::vector<std::string> &unknown,
                               function_ref<const char *(const char *)> lookup);
result<settings> read_settings(std::vector<std::string> &unknown);

} // namespace diomp
