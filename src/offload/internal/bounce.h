// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers through host memory, for an accelerator and memory that its queues cannot access:
// devices of this process without peer access to each other, host memory of other nodes, and device
// memory of other ranks that cannot be opened here (another node, or no device IPC). The owner of
// such device memory takes part. Transfers are cut into chunks, so that device copies overlap with
// the network.
//
// Memory of another rank's accelerator: for a put, the requester copies a chunk into a buffer in
// its own host segment and sends its address to the owner, whose bounce thread fetches the chunk
// and copies it to the device. A get runs the other way round. Several chunks are in flight at a
// time.
#pragma once

#include "base/function_ref.h"
#include "messaging/call.h"
#include "offload/internal/accelerators.h"
#include "offload/internal/segment_table.h"
#include "rma/rma.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace diomp::offload {

class variables;

/// Thread-safe. Create before engine.start(); destroy after the engine has stopped.
class bounce {
public:
    bounce(const segment_table &own, const variables &declared, memory::address_space &space,
           memory::segment &host, messaging::engine &engine, messaging::call_service &calls,
           rma::transfers &transfers, world_rank self);
    ~bounce();
    bounce(const bounce &) = delete;
    bounce &operator=(const bounce &) = delete;

    /// Copies on a queue of `by` and waits for completion; serves messages meanwhile.
    status copy(const accelerator &by, void *dst, const void *src, std::size_t nbytes);

    /// Waits for a copy in the stream pool of `by`; serves messages meanwhile.
    status wait_for(const accelerator &by, const device::ticket &of);

    /// Moves one chunk of nbytes between host memory at `host` and the other side, at `done` bytes
    /// from the beginning of the transfer. `host` may be reused on return.
    using chunk_function =
        function_ref<status(std::byte *host, std::size_t done, std::size_t nbytes)>;
    /// Passes the source chunk by chunk to `consume`, while the device copies the next chunk out.
    status copy_out(const accelerator &from, const std::byte *src, std::size_t nbytes,
                    chunk_function consume);
    /// Fills the destination with chunks from `produce`, while the device copies the previous chunk
    /// in.
    status copy_in(const accelerator &to, std::byte *dst, std::size_t nbytes,
                   chunk_function produce);

    /// Transfers between [address, address + nbytes) of `owner`'s device, as the owner sees it, and
    /// `local`. The range lies in the segment or in a variable that the owner has exposed. Blocks
    /// until the bytes have arrived.
    status request_from_owner(rma::direction dir, world_rank owner, int device,
                              std::uint64_t address, const device_ptr &local, std::size_t nbytes);

    // Boxes, given as runs between the arrays at `there` (or at the device and address) and `here`;
    // each call blocks until all runs are complete. Defined in bounce_runs.cpp.
    /// Copies the runs concurrently on queues of `by`.
    status copy_runs(rma::direction dir, const accelerator &by, std::byte *there, std::byte *here,
                     std::span<const rma::run> runs);
    /// Moves runs between the remote array and packed data at `host`.
    using packed_function = function_ref<status(std::byte *host, std::span<const rma::run> packed)>;
    /// Transfers between an accelerator and the array that `move` puts to or gets from, packed in
    /// host memory.
    status copy_runs_through_host(rma::direction dir, const device_ptr &here,
                                  std::span<const rma::run> runs, packed_function move);
    status request_from_owner(rma::direction dir, world_rank owner, int device,
                              std::uint64_t address, const device_ptr &local,
                              std::span<const rma::run> runs);

private:
    struct request {
        messaging::request_header header;
        std::uint64_t address = 0; ///< device address, as the owner sees it
        std::uint64_t staging = 0; ///< chunk in the requester's slot, as a global address
        std::uint32_t nbytes = 0;
        std::uint32_t num_runs = 0; ///< 0: contiguous; otherwise a list of runs precedes the data
        std::int32_t device = 0;
        rma::direction dir = rma::direction::put;
    };
    struct transfer_reply {
        std::int32_t failure = 0;
    };
    struct copy_job {
        world_rank requester;
        request args;
    };
    struct pinned_pair;   ///< pinned memory for two chunks, returned to a free list
    struct inflight_copy; ///< a job whose device copy is in flight

    /// Copies like a put from `local` to host memory, or like a get. Blocks.
    status copy_chunk(rma::direction dir, const device_ptr &local, std::byte *host,
                      std::size_t nbytes);
    result<pinned_pair> acquire_pinned_pair(const accelerator &of);

    /// Copies like a put of runs from `local` to a chunk, or like a get. Blocks.
    status copy_chunk_runs(rma::direction dir, const device_ptr &local, std::byte *chunk_begin,
                           std::span<const rma::run> runs);

    // Requester side.
    std::byte *staging();
    /// The staging buffer, pinned for the device of `local`. Call under request_mutex_.
    result<std::byte *> staging_for(const device_ptr &local);
    void pin_staging_for(device::backend &copier);
    status wait_for_owner(world_rank owner, const messaging::call_service::pending_call &call,
                          std::size_t nbytes);

    // Owner side.
    void on_request(const transport::message &incoming);
    void serve(); ///< runs in the bounce thread
    /// The address that a request names, and the bytes from there to the end of its allocation or
    /// variable.
    struct target_range {
        std::byte *address = nullptr;
        std::uint64_t nbytes_left = 0;
        const accelerator *on = nullptr;
    };
    [[nodiscard]] std::optional<target_range> find(const request &args) const;
    /// Starts a request. nullopt: it is complete.
    result<std::optional<inflight_copy>> execute(const copy_job &what);
    status execute_runs(const copy_job &what, const target_range &array);
    void send_reply(const copy_job &what, status outcome);

    const segment_table &own_;
    const variables &variables_;
    memory::address_space &space_;
    memory::segment &host_;
    messaging::engine &engine_;
    messaging::call_service &calls_;
    rma::transfers &transfers_;
    world_rank self_;
    transport::handler_id request_handler_;

    std::mutex request_mutex_;     ///< held during request_from_owner; never taken in handlers
    std::byte *staging_ = nullptr; ///< guarded by request_mutex_
    /// Pinning of staging_, by backend; empty where the driver refused it. Guarded by
    /// request_mutex_.
    std::map<const device::backend *, device::pinned_memory> staging_pins_;

    std::mutex pinned_mutex_; ///< leaf lock; guards free_pairs_
    std::vector<std::pair<const device::backend *, device::pinned_memory>> free_pairs_;

    std::mutex jobs_mutex_; ///< leaf lock; guards the members below
    std::condition_variable jobs_changed_;
    std::deque<copy_job> jobs_;
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace diomp::offload
