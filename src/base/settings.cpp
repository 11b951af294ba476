// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/settings.h"

#include "base/setting_values.h"
#include "base/sizes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace diomp {
namespace {

constexpr std::array<std::pair<const char *, error_policy>, 2> error_words{
    {{"abort", error_policy::abort}, {"return", error_policy::return_status}}};
constexpr std::array<std::pair<const char *, check_level>, 2> check_words{
    {{"none", check_level::none}, {"allocations", check_level::allocations}}};
constexpr std::array<std::pair<const char *, stats_mode>, 3> stats_words{
    {{"off", stats_mode::off},
     {"summary", stats_mode::summary},
     {"callsites", stats_mode::callsites}}};
constexpr std::array<std::pair<const char *, encryption>, 3> encryption_words{
    {{"off", encryption::off}, {"control", encryption::control}, {"all", encryption::all}}};
constexpr std::array<std::pair<const char *, ccl_choice>, 4> ccl_words{
    {{"auto", ccl_choice::automatic},
     {"native", ccl_choice::native},
     {"nccl", ccl_choice::nccl},
     {"rccl", ccl_choice::rccl}}};
constexpr device_path_set without(device_path_set path) {
    return static_cast<device_path_set>(static_cast<unsigned>(device_path_set::all) &
                                        ~static_cast<unsigned>(path));
}
constexpr std::array<std::pair<const char *, device_path_set>, 4> path_words{
    {{"all", device_path_set::all},
     {"no-ipc", without(device_path_set::ipc)},
     {"no-peer", without(device_path_set::peer)},
     {"bounce", device_path_set::none}}};
constexpr std::array<std::pair<const char *, bool>, 2> switch_words{{{"on", true}, {"off", false}}};

status parse_base(settings &into, const std::string &text) {
    if (text == "auto") {
        into.segment_base = 0;
        return {};
    }
    char *end = nullptr;
    errno = 0;
    unsigned long long const value = std::strtoull(text.c_str(), &end, 0);
    if (text.empty() || *end != '\0' || errno != 0 || value % (1ull << 30) != 0 || value == 0) {
        return malformed(text, "a virtual address that is a multiple of 1 GiB, or 'auto'");
    }
    into.segment_base = value;
    return {};
}

status parse_devices_per_rank(settings &into, const std::string &text) {
    constexpr int max_devices = 1024;
    int value = 0;
    auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size() || value < 1 ||
        value > max_devices) {
        return malformed(text, "a number of devices from 1 to 1024");
    }
    into.devices_per_rank = value;
    return {};
}

status parse_device_nodes(settings &into, const std::string &text) {
    into.device_numa_nodes.reset();
    if (text == "auto") {
        return {};
    }
    std::vector<int> nodes;
    const char *at = text.data();
    const char *const end = text.data() + text.size();
    while (true) {
        int node = 0;
        auto const [next, code] = std::from_chars(at, end, node);
        if (code != std::errc{} || node < -1 || (next != end && *next != ',')) {
            return malformed(text, "a list of NUMA nodes such as 0,0,1,-1, or 'auto'");
        }
        nodes.push_back(node);
        if (next == end) {
            break;
        }
        at = next + 1;
    }
    into.device_numa_nodes = std::move(nodes);
    return {};
}

std::string show_device_nodes(const settings &from) {
    if (!from.device_numa_nodes) {
        return "auto";
    }
    std::string text;
    for (int const node : *from.device_numa_nodes) {
        text += fmt::format("{}{}", text.empty() ? "" : ",", node);
    }
    return text;
}

status parse_core(settings &into, const std::string &text) {
    into.core = {};
    if (text == "none") {
        into.core.own_bytes = 0;
    } else if (text == "own") {
        into.core.own_bytes = SIZE_MAX;
    } else if (text == "all") {
        into.core.whole_arena = true;
    } else {
        auto size = parse_size(text);
        if (!size) {
            return malformed(text, "a size, or one of none, own, all");
        }
        into.core.own_bytes = size.value();
    }
    return {};
}

std::string show_core(const settings &from) {
    if (from.core.whole_arena) {
        return "all";
    }
    switch (from.core.own_bytes) {
    case 0:
        return "none";
    case SIZE_MAX:
        return "own";
    default:
        return format_size(from.core.own_bytes);
    }
}

template <std::string settings::*Field>
status parse_text(settings &into, const std::string &text) {
    into.*Field = text;
    return {};
}

template <std::string settings::*Field>
std::string show_text(const settings &from) {
    return from.*Field;
}

constexpr char conduit_choices[] = "auto|shm|ucx|gasnet|gaspi|tcp";
constexpr char network_choices[] = "auto|ucx|gasnet|gaspi|tcp";
constexpr char rma_choices[] = "auto|rdma|messages";
constexpr char device_memory_choices[] = "auto|on|off";
constexpr char atomics_choices[] = "messages|native";
constexpr char wait_choices[] = "auto|spin|yield|block";

template <std::string settings::*Field, const char *Choices>
status parse_choice_of(settings &into, const std::string &text) {
    return parse_choice(into.*Field, text, Choices);
}

constexpr auto rows = std::to_array<setting_row>({
    {"DIOMP_SEGMENT_SIZE", "size", "auto",
     "Address space reserved per rank for global memory. Physical memory is allocated on first "
     "touch. auto: the size of the node's memory, or an equal fraction of the reserved address "
     "range if many ranks run on the node.",
     [](settings &s, const std::string &t) { return parse_auto_size(s.segment_size_bytes, t); },
     [](const settings &s) { return show_auto_size(s.segment_size_bytes); }},
    {"DIOMP_DEVICE_SEGMENT_SIZE", "size", "auto",
     "Address space reserved per device that a rank uses, for memory that OpenMP maps and "
     "allocates there. auto: for host devices a quarter of the rank's own segment, at least 64 "
     "MiB; on a GPU twice its memory if reserving is free and the memory is not registered with "
     "GASNet-EX, otherwise four fifths of its memory divided by the number of ranks.",
     [](settings &s, const std::string &t) {
         return parse_auto_size(s.device_segment_size_bytes, t);
     },
     [](const settings &s) { return show_auto_size(s.device_segment_size_bytes); }},
    {"DIOMP_DEVICE_PATHS", "all|no-ipc|no-peer|bounce", "all",
     "Paths of transfers with GPU memory. no-ipc: do not map other ranks' memory; no-peer: no "
     "peer access between devices of a rank; bounce: neither, and no network access to GPU "
     "memory. For tests, and for machines whose hardware path is broken.",
     [](settings &s, const std::string &t) {
         return parse_word(s.device_paths, t, path_words, "one of all, no-ipc, no-peer, bounce");
     },
     [](const settings &s) { return show_word(s.device_paths, path_words); }},
    {"DIOMP_DEVICE_WAIT", wait_choices, "auto",
     "How threads wait for regions and transfers on CUDA devices: poll (spin), poll and yield the "
     "core (yield), or sleep until an interrupt (block; an empty region takes some 15 us longer). "
     "auto: the choice of CUDA's driver, but block if the node has more ranks than cores.",
     parse_choice_of<&settings::device_wait, wait_choices>, show_text<&settings::device_wait>},
    {"DIOMP_DEVICE_PIN_THRESHOLD", "size", "1M",
     "Copies of at least this size between global host memory and GPUs pin the allocation, once "
     "their total has reached its size, so that the GPU copies at full speed. At least 1M; 1T: "
     "never.",
     [](settings &s, const std::string &t) -> status {
         auto size = parse_size(t);
         DIOMP_TRY(size);
         s.device_pin_threshold_bytes = size.value();
         return {};
     },
     [](const settings &s) { return format_size(s.device_pin_threshold_bytes); }},
    {"DIOMP_MAX_ACTIVE_STREAMS", "integer", "32",
     "Copies of a GPU that may be in flight at a time, per rank; at the limit the rank waits for "
     "half of them.",
     [](settings &s, const std::string &t) {
         return parse_auto_number(s.max_active_streams, t, 1, 32);
     },
     [](const settings &s) { return fmt::format("{}", s.max_active_streams); }},
    {"DIOMP_CCL", "auto|native|nccl|rccl", "auto",
     "Library for collectives of groups of GPUs; equal on all ranks. auto: NCCL or RCCL if all "
     "endpoints are different GPUs of one vendor and every rank has the library, otherwise "
     "native; nccl, rccl: an error if the library cannot be used. Scans, and types and operators "
     "that the library does not have, are always native.",
     [](settings &s, const std::string &t) {
         return parse_word(s.ccl, t, ccl_words, "one of auto, native, nccl, rccl");
     },
     [](const settings &s) { return show_word(s.ccl, ccl_words); }},
    {"DIOMP_DEVICE_DIRECT_THRESHOLD", "size", "auto",
     "Native collectives of GPUs on blocks of at least this size copy from device to device and "
     "reduce on devices, if the members on a node can access each other's memory; smaller ones go "
     "through host memory. The largest value of all ranks is used. 0: all; 1T: none; auto: all, "
     "but from 32K between nodes, and for reductions if ranks share a GPU, which time-slices "
     "their kernels.",
     [](settings &s, const std::string &t) -> status {
         s.device_direct_threshold_bytes.reset();
         if (t == "auto") {
             return {};
         }
         auto size = parse_size(t);
         DIOMP_TRY(size);
         s.device_direct_threshold_bytes = size.value();
         return {};
     },
     [](const settings &s) {
         return s.device_direct_threshold_bytes ? format_size(*s.device_direct_threshold_bytes)
                                                : "auto";
     }},
    {"DIOMP_SEGMENT_BASE", "address", "auto",
     "Virtual address of the segments, equal in all processes. Change it if another library "
     "occupies the default.",
     parse_base,
     [](const settings &s) {
         return s.segment_base == 0 ? "auto" : fmt::format("{:#x}", s.segment_base);
     }},
    {"DIOMP_CONDUIT", conduit_choices, "auto",
     "Transport between ranks. auto: shared memory within a node, DIOMP_NETWORK between nodes; "
     "ucx, gasnet, gaspi, tcp: this network, also within a node.",
     parse_choice_of<&settings::conduit, conduit_choices>, show_text<&settings::conduit>},
    {"DIOMP_NETWORK", network_choices, "auto",
     "Transport between nodes if DIOMP_CONDUIT is auto. auto: the network whose launcher started "
     "the job; otherwise, if rank 0's host has a usable adapter for InfiniBand, RoCE, EFA or "
     "Slingshot, the first of UCX, GASNet-EX and GPI-2 in this build; otherwise TCP. For remote "
     "devices: tcp or ucx; other values choose between these two in the same way.",
     parse_choice_of<&settings::network, network_choices>, show_text<&settings::network>},
    {"DIOMP_CHECK", "none|allocations", "none",
     "allocations: check every transfer against the end of its allocation, not only of its "
     "segment. Costs a lookup per transfer.",
     [](settings &s, const std::string &t) {
         return parse_word(s.check, t, check_words, "one of none, allocations");
     },
     [](const settings &s) { return show_word(s.check, check_words); }},
    {"DIOMP_ERRORS", "abort|return", "abort",
     "Effect of an error in a call: end the job, or return the code to the caller.",
     [](settings &s, const std::string &t) {
         return parse_word(s.errors, t, error_words, "one of abort, return");
     },
     [](const settings &s) { return show_word(s.errors, error_words); }},
    {"DIOMP_TIMEOUT", "seconds", "0",
     "A call that waits for other ranks fails after this time and names these ranks. 0: waits "
     "forever, with a warning after DIOMP_WARN_AFTER.",
     [](settings &s, const std::string &t) { return parse_seconds(s.timeout_s, t); },
     [](const settings &s) { return fmt::format("{}", s.timeout_s); }},
    {"DIOMP_WARN_AFTER", "seconds", "60",
     "A call that has waited this long prints once what it waits for. 0: never.",
     [](settings &s, const std::string &t) { return parse_seconds(s.warn_after_s, t); },
     [](const settings &s) { return fmt::format("{}", s.warn_after_s); }},
    {"DIOMP_CORE", "size|none|own|all", "16M",
     "Global memory in core files. size: up to this size of the rank's own allocations, from the "
     "start of its symmetric and the end of its local and asymmetric memory; none; own: all of "
     "the rank's own allocations; all: the segments of all ranks of the node, gigabytes that are "
     "committed while they are written.",
     parse_core, show_core},
    {"DIOMP_STACKS", "on|off", "on",
     "Print the call stacks of all threads of all ranks to standard error before a job ends "
     "because of a timeout (DIOMP_TIMEOUT, diomp-run --timeout). Uses a real-time signal that has "
     "no handler at that moment.",
     [](settings &s, const std::string &t) {
         return parse_word(s.stacks, t, switch_words, "one of on, off");
     },
     [](const settings &s) { return show_word(s.stacks, switch_words); }},
    {"DIOMP_LOG", "off|error|warn|info|debug, COMPONENT:LEVEL,...", "warn",
     "Level of the runtime's messages on standard error, also by component: tcp:debug,coll:info. "
     "Components are the modules and folders of the source, as transport, tcp, ucx, messaging, "
     "group, coll, device_coll, offload, remote, launch.",
     [](settings &s, const std::string &t) { return parse_log_levels(s.log, t); },
     [](const settings &s) { return show_log_levels(s.log); }},
    {"DIOMP_STATS", "off|summary|callsites", "off",
     "Table of transfers, bytes and waiting times at exit; callsites: also by call site in the "
     "program.",
     [](settings &s, const std::string &t) {
         return parse_word(s.stats, t, stats_words, "one of off, summary, callsites");
     },
     [](const settings &s) { return show_word(s.stats, stats_words); }},
    {"DIOMP_STATS_FILE", "path", "",
     "File for the table of DIOMP_STATS instead of standard error; %r is replaced by the rank.",
     parse_text<&settings::stats_file>, show_text<&settings::stats_file>},
    {"DIOMP_TRACE", "path", "",
     "File for the times of all calls and transfers, for Perfetto; %r is replaced by the rank, "
     "without %r the rank is inserted before the extension. scripts/trace-overlap.py sums up the "
     "overlapped communication.",
     parse_text<&settings::trace_file>, show_text<&settings::trace_file>},
    {"DIOMP_SPIN", "integer", "auto",
     "Maximum number of polls before a waiting thread yields or sleeps; the actual number adapts "
     "to the load of the cores. auto: 2000, some 40 us.",
     [](settings &s, const std::string &t) { return parse_auto_number(s.spin_count, t, 0, -1); },
     [](const settings &s) { return show_auto_number(s.spin_count, -1); }},
    {"DIOMP_STREAM_THRESHOLD", "size", "auto",
     "Transfers of at least this size (at least 1K) use stores that bypass the caches. auto: "
     "tuned at run time from 1M up; collectives use the cache sizes.",
     [](settings &s, const std::string &t) { return parse_auto_size(s.stream_threshold_bytes, t); },
     [](const settings &s) { return show_auto_size(s.stream_threshold_bytes); }},
    {"DIOMP_CMA", "on|off", "on",
     "Cross-memory attach for registered memory of ranks on the same node; off: active messages.",
     [](settings &s, const std::string &t) {
         return parse_word(s.cross_memory_attach, t, switch_words, "one of on, off");
     },
     [](const settings &s) { return show_word(s.cross_memory_attach, switch_words); }},
    {"DIOMP_NODE_SIZE", "integer", "auto",
     "For tests: treat each group of this many ranks of a machine as a node of its own, with "
     "shared memory within that node only. auto: as the launcher reports.",
     [](settings &s, const std::string &t) { return parse_auto_number(s.node_size, t, 1, 0); },
     [](const settings &s) { return show_auto_number(s.node_size, 0); }},
    {"DIOMP_UCX_WORKERS", "integer", "auto",
     "Number of UCX workers per rank, by which as many threads can start transfers to other nodes "
     "concurrently; further threads share them. auto: up to 4, depending on the cores.",
     [](settings &s, const std::string &t) { return parse_auto_number(s.ucx_workers, t, 1, 0); },
     [](const settings &s) { return show_auto_number(s.ucx_workers, 0); }},
    {"DIOMP_TCP_INTERFACES", "list", "",
     "Network interfaces of this host for TCP connections from other ranks, separated by commas. "
     "Empty: all; interfaces on a network of the other rank's host are tried first.",
     parse_text<&settings::tcp_interfaces>, show_text<&settings::tcp_interfaces>},
    {"DIOMP_TCP_SEND_BUFFER", "size", "auto",
     "Send buffer of a connection of the TCP conduit, without the system's doubling. auto: 256K; "
     "networks with long delays need bandwidth times delay.",
     [](settings &s, const std::string &t) { return parse_auto_size(s.tcp_send_buffer_bytes, t); },
     [](const settings &s) { return show_auto_size(s.tcp_send_buffer_bytes); }},
    {"DIOMP_TCP_CONGESTION", "name", "auto",
     "Congestion control of the TCP conduit's connections, one that the system allows. auto: the "
     "system's default; if that is BBR, which paces, cubic or reno between hosts less than 5 ms "
     "apart.",
     parse_text<&settings::tcp_congestion>, show_text<&settings::tcp_congestion>},
    {"DIOMP_ENCRYPT", "off|control|all", "control",
     "Encryption between hosts; both sides of these connections are authenticated in any case. "
     "control: connections that start and control jobs and device services; all: also the data of "
     "the TCP conduit and of remote devices; choosing another network is then an error; off: only "
     "messages that carry secrets, which are all messages of diomp-run between hosts.",
     [](settings &s, const std::string &t) {
         return parse_word(s.encrypt, t, encryption_words, "one of off, control, all");
     },
     [](const settings &s) { return show_word(s.encrypt, encryption_words); }},
    {"DIOMP_NETWORK_RMA", rma_choices, "auto",
     "Transfers to other nodes by put and get of UCX or GASNet-EX (rdma), or by active messages "
     "that the target handles (messages). auto: rdma if the network is known to implement it in "
     "hardware.",
     parse_choice_of<&settings::network_rma, rma_choices>, show_text<&settings::network_rma>},
    {"DIOMP_NETWORK_DEVICE_MEMORY", device_memory_choices, "auto",
     "UCX or GASNet-EX reads and writes GPU memory directly, without copies through the host. "
     "auto: if UCX is 1.18 or newer and built for these GPUs, or GASNet-EX has memory kinds for "
     "them and an adapter moves the data; on: also if UCX is not known to support them or there "
     "is no adapter: processors then load the memory. For remote devices the service's setting is "
     "used, or the program's off.",
     parse_choice_of<&settings::network_device_memory, device_memory_choices>,
     show_text<&settings::network_device_memory>},
    {"DIOMP_NETWORK_ATOMICS", atomics_choices, "messages",
     "Atomic operations and signals on segments of other nodes by messages that the target "
     "handles, or by UCX's atomics; these are then used for all ranks including the caller: with "
     "DIOMP_CONDUIT=ucx only.",
     parse_choice_of<&settings::network_atomics, atomics_choices>,
     show_text<&settings::network_atomics>},
    {"DIOMP_DEVICES_PER_RANK", "integer", "1",
     "Number of devices that a rank drives (diomp-run --devices-per-rank). The first is its "
     "default device unless OMP_DEFAULT_DEVICE is set; ompx_rank_device() returns their "
     "numbers.",
     parse_devices_per_rank,
     [](const settings &s) { return fmt::format("{}", s.devices_per_rank); }},
    {"DIOMP_DEVICE_NUMA_NODES", "list", "auto",
     "NUMA node of each GPU, in the order of OpenMP's device numbers, -1 if unknown, for machines "
     "that do not report it. For tests, in programs without GPUs: NUMA node of each host device; "
     "the node's ranks then share these. auto: from the vendor's library and the kernel.",
     parse_device_nodes, show_device_nodes},
    {"DIOMP_CUDA_LIBRARY", "path", "",
     "CUDA's driver, if it is not libcuda.so.1 in the system's library path.",
     parse_text<&settings::cuda_library>, show_text<&settings::cuda_library>},
    {"DIOMP_HIP_LIBRARY", "path", "",
     "HIP's runtime, if it is not libamdhip64.so in the system's library path.",
     parse_text<&settings::hip_library>, show_text<&settings::hip_library>},
    {"DIOMP_REMOTE_DEVICES", "list", "",
     "Device services whose devices the program uses in addition: host[:port][@first][*count], "
     "separated by commas: count devices from number first (default 0) on; without a count all "
     "from there on. diomp-run --remote-devices starts services and sets it.",
     parse_text<&settings::remote_devices>, show_text<&settings::remote_devices>},
    {"DIOMP_LOCAL_DEVICES", "on|off", "on",
     "off: the program sees remote devices only, numbered from 0.",
     [](settings &s, const std::string &t) {
         return parse_word(s.local_devices, t, switch_words, "one of on, off");
     },
     [](const settings &s) { return show_word(s.local_devices, switch_words); }},
    {"DIOMP_SPLIT_THRESHOLD", "size", "auto",
     "Transfers with remote devices up to this size are sent inside the messages that start "
     "regions; larger ones directly between the memories. diomp-bench remote finds the best value.",
     [](settings &s, const std::string &t) { return parse_auto_size(s.split_threshold_bytes, t); },
     [](const settings &s) { return show_auto_size(s.split_threshold_bytes); }},
    {"DIOMP_POSTED_REGIONS", "on|off", "on",
     "Short nowait regions on remote devices that copy nothing back are complete for OpenMP once "
     "they have been sent; later operations on the device are ordered after them there. off: "
     "complete when they have run.",
     [](settings &s, const std::string &t) {
         return parse_word(s.posted_regions, t, switch_words, "one of on, off");
     },
     [](const settings &s) { return show_word(s.posted_regions, switch_words); }},
    {"DIOMP_TOKEN", "text", "",
     "Shared secret of clients and device services. Services remove it from their environment at "
     "start.",
     [](settings &, const std::string &) -> status { return {}; },
     [](const settings &) { return std::string(std::getenv("DIOMP_TOKEN") ? "(set)" : ""); }},
    {"DIOMP_TOKEN_FILE", "path", "",
     "A file with the shared secret, which no other user may be able to read.",
     [](settings &, const std::string &) -> status { return {}; },
     [](const settings &) {
         char const *const file = std::getenv("DIOMP_TOKEN_FILE");
         return std::string(file != nullptr ? file : "");
     }},
    {"DIOMP_NCCL_LIBRARY", "path", "",
     "NVIDIA's collective library, if it is not libnccl.so.2 in the system's library path.",
     parse_text<&settings::nccl_library>, show_text<&settings::nccl_library>},
    {"DIOMP_RCCL_LIBRARY", "path", "",
     "AMD's collective library, if it is not librccl.so.1 in the system's library path.",
     parse_text<&settings::rccl_library>, show_text<&settings::rccl_library>},
});

} // namespace

std::span<const setting_row> setting_rows() { return rows; }

result<settings> read_settings(std::vector<std::string> &unknown,
                               function_ref<const char *(const char *)> lookup) {
    settings values;
    for (setting_row const &row : rows) {
        const char *text = lookup(row.name);
        if (text == nullptr || (*text == '\0' && std::strlen(row.default_value) > 0)) {
            continue;
        }
        if (auto parsed = row.parse(values, text); !parsed) {
            return error(
                OMPX_ERR_ARG, fmt::format("{}={}: {}", row.name, text, parsed.failure().message()),
                fmt::format("{} is {}; default {}", row.name, row.type, row.default_value));
        }
    }
    // Variables of the launcher and of diompcc are not settings of the program.
    constexpr std::array<const char *, 8> foreign{
        "DIOMP_LAUNCH_", "DIOMP_RANK=", "DIOMP_RSH=",         "DIOMP_TEST_",
        "DIOMP_CC=",     "DIOMP_CXX=",  "DIOMP_DPU_SYSROOT=", "DIOMP_DPU_LD="};
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        std::string const variable(*entry);
        if (!variable.starts_with("DIOMP_")) {
            continue;
        }
        bool known = false;
        for (const char *prefix : foreign) {
            known = known || variable.starts_with(prefix);
        }
        for (setting_row const &row : rows) {
            known = known || variable.starts_with(std::string(row.name) + "=");
        }
        if (!known) {
            unknown.push_back(variable.substr(0, variable.find('=')));
        }
    }
    return values;
}

result<settings> read_settings(std::vector<std::string> &unknown) {
    return read_settings(unknown, [](const char *name) { return std::getenv(name); });
}

} // namespace diomp
