// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the clients of a world know about their devices, and must agree on before the sessions join.
#pragma once

#include "base/result.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace diomp::offload::remote {

struct world_terms {
    std::string network; ///< DIOMP_NETWORK; that of rank 0 applies
    int node_size = 0;   ///< world_options::node_size; that of rank 0 applies
    std::string node;    ///< of the client, launch::node_identity()
    bool encrypts_data = false;
    bool have_adapters = true;
    bool is_on_one_host = true; ///< the clients and their devices
    int num_devices = 0;
    std::vector<bool> is_gpu;     ///< [device] of this client: its memory is not in its slot
    std::vector<bool> can_call;   ///< [device] of this client: calls in its regions are possible
    std::size_t memory_bytes = 0; ///< of the largest device
    std::size_t least_bytes = std::numeric_limits<std::size_t>::max(); ///< of the smallest
    /// Memory of the smallest GPU, outside its slot.
    std::size_t least_gpu_bytes = std::numeric_limits<std::size_t>::max();

    /// Adds a device of this client.
    void add(const device_description &device);
    bool operator==(const world_terms &) const = default;
};
[[nodiscard]] std::string encode(const world_terms &terms);
result<world_terms> decode_terms(std::string_view bytes);

struct agreed_terms {
    world_terms all;                       ///< of the world
    std::vector<int> num_devices;          ///< [client]
    std::vector<std::vector<bool>> is_gpu; ///< [client][device]
    /// Regions of devices with a smaller index can make calls: all clients have them, as processors
    /// or as GPUs.
    int num_speaking = 0;
};
/// Combines the terms of client `rank` with those of the others. Collective; blocks.
result<agreed_terms> agree(const world_terms &own, int rank, const client_exchange &exchange);

} // namespace diomp::offload::remote
