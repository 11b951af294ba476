// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All DIOMP_* variables: one table from which the parser, diomp-info and the documentation are
// made. Its rows stand in one source per module.
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

/// How calls in target regions reach memory of other ranks.
enum class device_call_paths : std::uint8_t {
    automatic, ///< loads and stores where the device can, otherwise the proxy thread
    direct,    ///< loads and stores only
    ring       ///< the proxy thread only
};

/// Global memory that core files include.
struct core_content {
    std::size_t own_bytes = std::size_t{16} << 20; ///< of this rank's allocations, at most
    bool whole_arena = false;                      ///< all global memory of all ranks of the node
    bool operator==(const core_content &) const = default;
};

/// Segments of host memory.
struct memory_settings {
    std::size_t segment_size_bytes = 0; ///< 0: chosen from the node's memory and ranks
    std::uint64_t segment_base = 0;     ///< 0: chosen for this build
    check_level check = check_level::none;
    core_content core;
};

struct transport_settings {
    std::string conduit = "auto";
    std::string network = "auto";
    bool cross_memory_attach = true;
    int node_size = 0; ///< 0: as the launcher says
    encryption encrypt = encryption::control;
    std::string network_rma = "auto";
    std::string network_device_memory = "auto";
    std::string network_atomics = "messages";
};

struct ucx_settings {
    int workers = 0; ///< 0: chosen from the cores
    bool limits_access = true;
};

struct tcp_settings {
    std::string interfaces;            ///< empty: all
    std::size_t send_buffer_bytes = 0; ///< 0: chosen by the conduit
    std::string congestion = "auto";
    int max_connections = 0; ///< 0: chosen by the conduit
};

/// Waits of the engine.
struct messaging_settings {
    double timeout_s = 0; ///< 0: wait without limit (with a warning)
    double warn_after_s = 60;
    int spin_count = -1; ///< -1: 2000
};

struct rma_settings {
    std::size_t stream_threshold_bytes = 0; ///< 0: chosen from the caches
};

struct coll_settings {
    std::string tuning_file; ///< empty: none
};

/// Errors, and what the runtime writes about its work.
struct runtime_settings {
    error_policy errors = error_policy::abort;
    bool stacks = true; ///< call stacks are printed when the job has timed out
    log_levels log;
    stats_mode stats = stats_mode::off;
    std::string stats_file; ///< empty: standard error
    std::string trace_file; ///< empty: none
};

struct device_settings {
    int per_rank = 1;
    /// [device] -1: unknown. None: queried from the vendor's library.
    std::optional<std::vector<int>> numa_nodes;
    std::string wait = "auto"; ///< used by libomptarget, which reads it itself
    int copy_threads = -1;     ///< -1: by processors; used by libomptarget, which reads it itself
    bool plan_graphs = true;   ///< the same
    int max_active_streams = 32;
    std::string cuda_library; ///< empty: the usual name
    std::string hip_library;
};

/// Device memory in the address space.
struct offload_settings {
    std::size_t segment_size_bytes = 0; ///< per device; 0: chosen from memory and ranks
    device_path_set paths = device_path_set::all;
    device_call_paths calls = device_call_paths::automatic;
    std::size_t pin_threshold_bytes = std::size_t{1} << 20;
};

struct device_coll_settings {
    ccl_choice ccl = ccl_choice::automatic;
    std::optional<std::size_t> direct_threshold_bytes; ///< none: automatic
    std::string nccl_library;                          ///< empty: the usual name
    std::string rccl_library;
};

/// Devices of other hosts.
struct remote_settings {
    std::string devices; ///< empty: none
    bool has_local_devices = true;
    std::size_t split_threshold_bytes = 0; ///< 0: default
    bool posted_regions = true;
};

/// The values of all variables, by the module that reads them.
struct settings {
    memory_settings memory;
    transport_settings transport;
    ucx_settings ucx;
    tcp_settings tcp;
    messaging_settings messaging;
    rma_settings rma;
    coll_settings coll;
    runtime_settings runtime;
    device_settings device;
    offload_settings offload;
    device_coll_settings device_coll;
    remote_settings remote;
};

struct setting_value {
    /// Stores into a settings object, or returns the reason why it cannot.
    status (*parse)(settings &into, const std::string &text);
    std::string (*show)(const settings &from);
};

/// One row of the table.
struct setting_row {
    const char *name;
    const char *type; ///< "size", "seconds", "integer", "address", "on|off", or the list of words
    const char *default_value; ///< in the form of the variable
    const char *help;
    setting_value value;
};

std::span<const setting_row> setting_rows();

/// Reads the environment. Malformed values are errors that name the variable, its value and the
/// allowed values. Unknown DIOMP_* variables are returned in `unknown` so that the caller can
/// report them.
result<settings> read_settings(std::vector<std::string> &unknown,
                               function_ref<const char *(const char *)> lookup);
result<settings> read_settings(std::vector<std::string> &unknown);

} // namespace diomp
