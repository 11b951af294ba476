// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the conduit of a job is created with; each network's own options lie beside it.
#pragma once

#include "transport/tcp/options.h"
#include "transport/types.h"
#include "transport/ucx/options.h"

#include <string>

namespace diomp::transport {

struct conduit_options {
    std::string network = "auto"; ///< between nodes if the conduit is "auto"; names as in create.h
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

} // namespace diomp::transport
