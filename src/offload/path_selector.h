// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "base/result.h"
#include "memory/location.h"
#include "rma/path.h"

#include <cstddef>
#include <memory>
#include <optional>

namespace diomp {
enum class device_path_set : unsigned;
}

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::offload {

class accelerators;
class peer_segments;
struct accelerator;
struct device_ptr;
struct remote_device_memory;
struct remote_side;
struct peer_view;
class segment_table;

/// Bytes from the first to the last byte of a transfer on either side.
struct transfer_extents {
    std::size_t remote = 0;
    std::size_t local = 0;
};

/// What copies a transfer: a stream of `by`, which accesses the other side at `there`; otherwise
/// the network, between its own location of the other side and local memory; otherwise it goes
/// through host memory.
struct selected_path {
    rma::path path = rma::path::bounce; ///< unless the network copies
    const accelerator *by = nullptr;
    std::byte *there = nullptr;
    std::optional<memory::location> network;
};

/// Finds out which stream of this process, or whether the network, can transfer between the two
/// sides, within what DIOMP_DEVICE_PATHS allows. Thread-safe. Create before engine.start().
class path_selector {
public:
    path_selector(const segment_table &own, accelerators &devices, messaging::engine &engine,
                  messaging::call_service &calls, device_path_set allowed, world_rank self);
    ~path_selector();

    /// Selects the path of a transfer with an accelerator on at least one side.
    result<selected_path> select(world_rank rank, const remote_side &there, const device_ptr &here,
                                 transfer_extents bytes);
    /// The address at which queues of `by`, an own device, access [offset, offset + nbytes) of a
    /// segment. The owner is on this node, or is this rank. OMPX_ERR_UNSUPPORTED: `by` has no
    /// access, or DIOMP_DEVICE_PATHS forbids it.
    result<std::byte *> address_for(world_rank owner, const remote_device_memory &there,
                                    std::size_t nbytes, const accelerator &by);
    /// All memory of a segment of another rank of this node, for kernels of `by`, an own device;
    /// see peer_segments::open_all.
    result<peer_view> open_all(world_rank owner, int device, const accelerator &by);

private:
    /// For another rank's accelerator: a stream of this process if the memory can be opened here.
    result<selected_path> select_for_peer(world_rank rank, const remote_device_memory &there,
                                          const device_ptr &here, transfer_extents bytes);
    /// The remote location and both memory kinds, if the network itself can transfer between the
    /// two sides.
    [[nodiscard]] std::optional<memory::location>
    location_for_network(world_rank rank, const memory::location &there, const device_ptr &here,
                         transfer_extents bytes) const;
    /// Whether streams of `by` can access the memory of `on`, another accelerator of this process.
    [[nodiscard]] bool has_peer_access(const accelerator &by, const accelerator &on) const;

    const segment_table &own_;
    messaging::engine &engine_;
    device_path_set allowed_;
    world_rank self_;
    std::unique_ptr<peer_segments> const peers_;
};

} // namespace diomp::offload
