// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "diomp/types.h"
#include "offload/sides.h"

#include <cstddef>
#include <memory>
#include <span>

namespace diomp::rma {
class transfers;
}

namespace diomp::offload {

class bounce_requester;
class inflight_guard;
class openmp_devices;
class path_selector;
class stream_copies;
struct transfer_extents;
class device_segments;
class remote_mover;
class translator;
struct transfer_start;

/// Direction and completion of a transfer.
struct transfer_mode {
    rma::direction dir = rma::direction::put;
    bool nonblocking = false;      ///< may return early; `event` or a fence waits
    ompx_event_t *event = nullptr; ///< may be null
    bool on_device = false;        ///< local side; set by mover::move
    bool may_pin = true;           ///< large host memory; not while a kernel waits for the transfer
};

/// Transfers between two sides: chooses the path and the copier. Thread-safe.
class mover {
public:
    mover(const openmp_devices &openmp, const device_segments &segments, translator &translator,
          path_selector &paths, rma::transfers &transfers, stream_copies &copies,
          bounce_requester &bounce, inflight_guard &inflight);
    ~mover();

    /// A blocking put returns when the source may be reused, a blocking get when the data has
    /// arrived. The rank must be valid. `reusable` receives the translation if later transfers can
    /// use it.
    result<rma::path> move(transfer_mode mode, world_rank rank, const transfer_side &remote,
                           const transfer_side &local, std::size_t nbytes, translation &reusable);
    /// Transfers a box or a section; the pointers are the starts of a box's arrays, and address the
    /// first elements of a section. One copy per run where a stream copies; runs are packed into
    /// chunks where they go through host memory. Blocks.
    template <typename Shape>
    result<rma::path> move_box(rma::direction dir, world_rank rank, const transfer_side &remote,
                               const transfer_side &local, const Shape &shape) {
        return move_walk(dir, rank, remote, local, rma::box_walk::make(shape));
    }

    /// Transfers runs between memory of accelerators, relative to the sides' pointers. Blocks.
    result<rma::path> move_runs(rma::direction dir, world_rank rank, const transfer_side &remote,
                                const transfer_side &local, std::span<const rma::run> runs);
    /// Locates the remote side of a transfer as move() does.
    result<remote_side> locate(world_rank rank, const transfer_side &remote, std::size_t nbytes);

    /// Allocates and pins now what transfers of a device through host memory need: a driver may
    /// wait for running kernels before it does so.
    status prepare_for_regions(const accelerator &on);

private:
    result<rma::path> move_walk(rma::direction dir, world_rank rank, transfer_side remote,
                                transfer_side local, result<rma::box_walk> made);
    /// Moves runs between located sides that are not remote processors. Blocks.
    result<rma::path> move_runs(rma::direction dir, world_rank rank, const remote_side &there,
                                const device_ptr &here, transfer_extents extents,
                                std::span<const rma::run> runs);
    /// Moves runs with a remote processor on at least one side; see remote_mover::move.
    result<rma::path> move_remotely(rma::direction dir, world_rank rank,
                                    const located_sides &between, std::span<const rma::run> runs,
                                    transfer_start *start);
    result<rma::path> start_remotely(transfer_mode mode, world_rank rank,
                                     const located_sides &between, std::size_t nbytes);
    result<rma::path> start_or_move(transfer_mode mode, world_rank rank,
                                    const memory::location &there, std::byte *here,
                                    std::size_t nbytes);
    status copy_on_stream(transfer_mode mode, world_rank rank, const accelerator &by,
                          std::byte *there, std::byte *here, std::size_t nbytes);
    status move_through_host(rma::direction dir, world_rank rank, const remote_side &there,
                             const device_ptr &here, std::size_t nbytes);
    status move_runs_through_host(rma::direction dir, world_rank rank, const remote_side &there,
                                  const device_ptr &here, std::span<const rma::run> runs);

    const openmp_devices &openmp_;
    translator &translator_;
    path_selector &paths_;
    rma::transfers &transfers_;
    stream_copies &copies_;
    bounce_requester &bounce_;
    inflight_guard &inflight_;
    std::unique_ptr<remote_mover> const remote_;
};

} // namespace diomp::offload
