// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "base/result.h"
#include "offload/stream_copies.h"
#include "rma/box.h"
#include "rma/path.h"
#include "transport/types.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

namespace diomp::messaging {
class call_service;
class engine;
struct pending_call;
} // namespace diomp::messaging

namespace diomp::offload {

/// Requests that owners move their device memory, see bounce_server.h. Thread-safe.
class bounce_requester {
public:
    bounce_requester(transport::handler_id handler, memory::segment &host,
                     messaging::engine &engine, messaging::call_service &calls,
                     stream_copies &copies, world_rank self)
        : request_handler_(handler), host_(host), engine_(engine), calls_(calls), copies_(copies),
          self_(self) {}

    /// Transfers between [address, address + nbytes) of `owner`'s device, as the owner sees it, and
    /// `local`. The range lies in the segment or in a variable that the owner has exposed. Blocks
    /// until the bytes have arrived.
    status request_from_owner(rma::direction dir, world_rank owner, int device,
                              std::uint64_t address, const device_ptr &local, std::size_t nbytes);
    /// Transfers runs between the array at the device and address and the one at `local`.
    status request_from_owner(rma::direction dir, world_rank owner, int device,
                              std::uint64_t address, const device_ptr &local,
                              std::span<const rma::run> runs);

    /// See mover::prepare_for_regions.
    status prepare_for_regions(const accelerator &on);

private:
    /// Copies like a put from `local` to host memory, or like a get. Blocks.
    status copy_chunk(rma::direction dir, const device_ptr &local, std::byte *host,
                      std::size_t nbytes);
    /// Copies like a put of runs from `local` to a chunk, or like a get. Blocks.
    status copy_chunk_runs(rma::direction dir, const device_ptr &local, std::byte *chunk_begin,
                           std::span<const rma::run> runs);
    /// The staging buffer, pinned for the device of `local`. Call under request_mutex_.
    result<std::byte *> staging_for(const device_ptr &local);
    void pin_staging_for(device::backend &copier);
    status wait_for_owner(world_rank owner, const messaging::pending_call &call,
                          std::size_t nbytes);

    transport::handler_id request_handler_;
    memory::segment &host_;
    messaging::engine &engine_;
    messaging::call_service &calls_;
    stream_copies &copies_;
    world_rank self_;
    std::mutex request_mutex_;     ///< held during request_from_owner; never taken in handlers
    std::byte *staging_ = nullptr; ///< guarded by request_mutex_
    /// Pinning of staging_, by backend; empty where the driver refused it. Guarded by
    /// request_mutex_.
    std::map<const device::backend *, device::pinned_memory> staging_pins_;
};

} // namespace diomp::offload
