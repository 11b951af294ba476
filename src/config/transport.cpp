// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "config/internal/rows.h"

namespace diomp::config {
namespace {

constexpr char conduit_choices[] = "auto|shm|ucx|gasnet|gaspi|tcp";
constexpr char network_choices[] = "auto|ucx|gasnet|gaspi|tcp";
constexpr char rma_choices[] = "auto|rdma|messages";
constexpr char device_memory_choices[] = "auto|on|off";
constexpr char atomics_choices[] = "messages|native";
constexpr std::array<std::pair<const char *, encryption>, 3> encryption_words{
    {{"off", encryption::off}, {"control", encryption::control}, {"all", encryption::all}}};

constexpr std::array<std::pair<const char *, bool>, 2> access_words{
    {{"job", true}, {"any", false}}};

} // namespace

std::span<const setting_row> transport_rows() {
    static constexpr auto rows = std::to_array<setting_row>({
        {"DIOMP_CONDUIT", conduit_choices, "auto",
         "Transport between ranks. auto: shared memory within a node, DIOMP_NETWORK between "
         "nodes; ucx, gasnet, gaspi, tcp: this network, also within a node.",
         value<choice<conduit_choices>>([](auto &s) -> auto & { return s.transport.conduit; })},
        {"DIOMP_NETWORK", network_choices, "auto",
         "Transport between nodes if DIOMP_CONDUIT is auto. auto: the network whose launcher "
         "started the job; otherwise, if rank 0's host has a usable adapter for InfiniBand, RoCE, "
         "EFA or Slingshot, the first of UCX, GASNet-EX and GPI-2 in this build; otherwise TCP. "
         "For remote devices: tcp or ucx; other values choose between these two in the same way.",
         value<choice<network_choices>>([](auto &s) -> auto & { return s.transport.network; })},
        {"DIOMP_CMA", "on|off", "on",
         "Cross-memory attach for registered memory of ranks on the same node; off: active "
         "messages.",
         value<on_off>([](auto &s) -> auto & { return s.transport.cross_memory_attach; })},
        {"DIOMP_NODE_SIZE", "integer", "auto",
         "For tests: treat each group of this many ranks of a machine as a node of its own, with "
         "shared memory within that node only; the same for sessions of device services. auto: as "
         "the launcher reports.",
         value<auto_number<1, 0>>([](auto &s) -> auto & { return s.transport.node_size; })},
        {"DIOMP_ENCRYPT", "off|control|all", "control",
         "Encryption between hosts; both sides of these connections are authenticated in any "
         "case. control: connections that start and control jobs and device services; all: also "
         "the data of the TCP conduit and of remote devices; choosing another network is then an "
         "error; off: only messages that carry secrets, which are all messages of diomp-run "
         "between hosts.",
         value<word<encryption_words>>([](auto &s) -> auto & { return s.transport.encrypt; })},
        {"DIOMP_NETWORK_RMA", rma_choices, "auto",
         "Transfers to other nodes by put and get of UCX or GASNet-EX (rdma), or by active "
         "messages that the target handles (messages). auto: rdma if the network is known to "
         "implement it in hardware.",
         value<choice<rma_choices>>([](auto &s) -> auto & { return s.transport.network_rma; })},
        {"DIOMP_NETWORK_DEVICE_MEMORY", device_memory_choices, "auto",
         "UCX or GASNet-EX reads and writes GPU memory directly, without copies through the host. "
         "auto: if UCX is 1.18 or newer and built for these GPUs, or GASNet-EX has memory kinds "
         "for them and an adapter moves the data; on: also if UCX is not known to support them or "
         "there is no adapter: processors then load the memory. For remote devices the service's "
         "setting is used, or the program's off.",
         value<choice<device_memory_choices>>(
             [](auto &s) -> auto & { return s.transport.network_device_memory; })},
        {"DIOMP_NETWORK_ATOMICS", atomics_choices, "messages",
         "Atomic operations and signals on segments of other nodes by messages that the target "
         "handles, or by UCX's atomics; these are then used for all ranks including the caller: "
         "with DIOMP_CONDUIT=ucx only.",
         value<choice<atomics_choices>>(
             [](auto &s) -> auto & { return s.transport.network_atomics; })},
        {"DIOMP_UCX_WORKERS", "integer", "auto",
         "Number of UCX workers per rank, by which as many threads can start transfers to other "
         "nodes concurrently; further threads share them. auto: up to 4, depending on the cores.",
         value<auto_number<1, 0>>([](auto &s) -> auto & { return s.ucx.workers; })},
        {"DIOMP_UCX_ACCESS", "job|any", "job",
         "job: UCX listens only on interfaces that lead to hosts of the job (on loopback if it is "
         "on one machine, unless UCX_NET_DEVICES is set), and its TCP ports accept connections "
         "from addresses of these hosts only. any: as UCX does by default, for hosts whose "
         "addresses are translated on the way. For remote devices always job.",
         value<word<access_words>>([](auto &s) -> auto & { return s.ucx.limits_access; })},
        {"DIOMP_TCP_INTERFACES", "list", "",
         "Network interfaces of this host for TCP connections from other ranks, separated by "
         "commas. Empty: all; interfaces on a network of the other rank's host are tried first.",
         value<any_text>([](auto &s) -> auto & { return s.tcp.interfaces; })},
        {"DIOMP_TCP_SEND_BUFFER", "size", "auto",
         "Send buffer of a connection of the TCP conduit, without the system's doubling. auto: "
         "256K to 1M, 1/128 of the level 3 cache; networks with long delays need bandwidth times "
         "delay.",
         value<auto_size>([](auto &s) -> auto & { return s.tcp.send_buffer_bytes; })},
        {"DIOMP_TCP_CONGESTION", "name", "auto",
         "Congestion control of the TCP conduit's connections, one that the system allows. auto: "
         "the system's default; if that is BBR, which paces, cubic or reno between hosts less "
         "than 5 ms apart.",
         value<any_text>([](auto &s) -> auto & { return s.tcp.congestion; })},
        {"DIOMP_TCP_CONNECTIONS", "integer", "auto",
         "Number of connections that a rank of the TCP conduit keeps open. Beyond it, one that is "
         "idle is closed for each that is opened, and opened again when it is needed. auto: three "
         "quarters of the descriptors that a process may have (ulimit -n).",
         value<auto_number<1, 0>>([](auto &s) -> auto & { return s.tcp.max_connections; })},
    });
    return rows;
}

} // namespace diomp::config
