// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Creation of the conduit from a name and options.
#pragma once

#include "launch/launch.h"
#include "transport/arena.h"
#include "transport/conduit.h"
#include "transport/tcp/options.h"
#include "transport/ucx/options.h"

namespace diomp::transport {

/// Bytes of control area per rank that the arena must have for the conduits of this build.
std::size_t control_bytes_per_rank();

struct conduit_options {
    std::string network = "auto"; ///< between nodes if the conduit is "auto"; names as in create()
    bool cross_memory_attach = true;
    double dead_peer_timeout_s = 30;       ///< a peer that does not respond for this time is lost
    int num_network_peers = 0;             ///< peers reached through the network; set by create()
    bool encrypts = false;                 ///< create() fails if the network cannot encrypt
    std::string network_rma = "auto";      ///< auto, rdma, messages
    std::string device_memory = "auto";    ///< auto, on, off: see device_transfers
    device_range_maker make_device_ranges; ///< empty: no device memory
    bool native_atomics = false;           ///< create() fails if the conduit has none
    tcp::options tcp;
    ucx::options ucx;
};

/// Collective over the job. `arena` must outlive the conduit. Names: "auto" (shm for ranks of this
/// node, options.network for others if there are any), "shm", and "ucx", "gasnet", "gaspi" and
/// "tcp" (for every rank but the caller's own). options.network: "auto", or one of the latter four.
result<std::unique_ptr<conduit>> create(const std::string &name, launch::launcher &launcher,
                                        const arena &arena, const conduit_options &options);

} // namespace diomp::transport
