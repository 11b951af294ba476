// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One-sided transfers, except those that the inline path of the API completes itself.
//
// The address space locates the remote side. Directly mapped memory is copied by the calling core
// and complete on return. remote_transfers and registered_transfers move all other memory.
//
// Glossary: remote: neither this rank nor mapped here. event: the handle of a nonblocking transfer.
// continuation: a function called after completion of a transfer, by a polling thread.
#pragma once

#include "base/result.h"
#include "diomp/types.h"
#include "rma/path.h"
#include "transport/types.h"

#include <cstddef>
#include <memory>
#include <span>

namespace diomp::memory {
class address_space;
class directory;
class segment;
} // namespace diomp::memory

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::rma {

class atomics;
class blocking_transfers;
struct box;
class box_transfers;
class device_copies;
class nonblocking_transfers;
struct options;
class signals;

/// Owns all kinds of transfers of a rank, and completes them; each kind has a header of its own,
/// which its callers include. Any thread. Create before
/// engine.start(). Ranks are valid, pointers not null unless nbytes is 0.
class transfers {
public:
    transfers(memory::address_space &space, memory::segment &own, memory::directory &directory,
              messaging::engine &engine, messaging::call_service &calls, const options &options);
    ~transfers();

    /// Put blocks until the source may be reused, get until the data has arrived. Both return the
    /// path taken.
    result<path> put(world_rank peer, void *remote, const void *local, std::size_t nbytes) {
        return move(direction::put, peer, remote, const_cast<void *>(local), nbytes);
    }
    result<path> get(world_rank peer, const void *remote, void *local, std::size_t nbytes) {
        return move(direction::get, peer, remote, local, nbytes);
    }

    /// A nonblocking put or get of a box. *event is null if it is complete on return; with a null
    /// `event` the next fence completes it.
    result<path> start_box(direction dir, world_rank peer, const void *remote, void *local,
                           const box &shape, ompx_event_t *event);

    /// See blocking_transfers.
    [[nodiscard]] std::size_t stream_threshold() const;
    [[nodiscard]] blocking_transfers &blocking() { return blocking_; }
    [[nodiscard]] box_transfers &boxes() { return boxes_; }
    [[nodiscard]] nonblocking_transfers &nonblocking() { return nonblocking_; }
    [[nodiscard]] rma::atomics &atomics() { return atomics_; }
    [[nodiscard]] rma::signals &signals() { return signals_; }
    [[nodiscard]] rma::device_copies &device_copies() { return device_copies_; }

    /// Completes all operations of this rank, at all peers or at least at those given.
    status fence();
    /// Completes all transfers of this rank, those of contexts too. Call when no other thread makes
    /// calls.
    status finish();
    status fence(std::span<const world_rank> peers);
    /// Completes all operations of this rank at this peer, at least.
    status fence_rank(world_rank peer);
    /// Makes this rank's earlier puts, signals and atomics visible at each peer before its later
    /// ones. Networks keep no order, so this completes what went through one.
    status order();
    /// Whether a fence only has to order memory: no rank is remote, and there are no device copies.
    [[nodiscard]] bool all_direct() const;
    /// A barrier includes a fence, made first, since other ranks continue once this rank has
    /// arrived. Transfers between mapped segments are ordered by the barrier itself.
    status fence_before_barrier() { return all_direct() ? status{} : fence(); }
    /// Completes the puts to one peer, and no other operations.
    status flush(world_rank peer);

private:
    result<path> move(direction dir, world_rank peer, const void *remote, void *local,
                      std::size_t nbytes);

    struct parts;

    memory::address_space &space_;
    messaging::engine &engine_;
    std::unique_ptr<parts> const parts_;
    blocking_transfers &blocking_;
    box_transfers &boxes_;
    nonblocking_transfers &nonblocking_;
    rma::atomics &atomics_;
    rma::signals &signals_;
    rma::device_copies &device_copies_;
};

} // namespace diomp::rma
