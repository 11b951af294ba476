// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/memory.h"
#include "messaging/pooled_completion.h"
#include "rma/atomics.h"
#include "rma/blocking_transfers.h"
#include "rma/box_transfers.h"
#include "rma/device_copies.h"
#include "rma/internal/registered_transfers.h"
#include "rma/internal/remote_transfers.h"
#include "rma/internal/target_requests.h"
#include "rma/nonblocking_transfers.h"
#include "rma/options.h"
#include "rma/rma.h"
#include "rma/signals.h"

#include <fmt/core.h>

#include <atomic>

namespace diomp::rma {

struct transfers::parts {
    parts(memory::address_space &space, memory::segment &own, memory::directory &directory,
          messaging::engine &engine, messaging::call_service &calls, const options &options)
        : requests(own, directory, engine, calls, acks),
          signals(space, own, directory, engine, acks, blocking, boxes, remote, atomics),
          acks(engine), remote(options.num_ranks, space, own, directory, engine),
          registered(options.self, own, engine, requests),
          blocking(options.self, options.stream_threshold_bytes, remote, registered),
          boxes(space, blocking, remote),
          nonblocking(space, engine, blocking, remote, options.on_transfer_complete),
          atomics(options.self, space, engine, requests, remote), device_copies(engine) {}

    // Handlers have the numbers of their construction, in this order on all ranks.
    target_requests requests;
    rma::signals signals;
    acknowledgements acks;
    remote_transfers remote;
    registered_transfers registered;
    blocking_transfers blocking;
    box_transfers boxes;
    nonblocking_transfers nonblocking;
    rma::atomics atomics;
    rma::device_copies device_copies;
};

transfers::transfers(memory::address_space &space, memory::segment &own,
                     memory::directory &directory, messaging::engine &engine,
                     messaging::call_service &calls, const options &options)
    : space_(space), engine_(engine),
      parts_(std::make_unique<parts>(space, own, directory, engine, calls, options)),
      blocking_(parts_->blocking), boxes_(parts_->boxes), nonblocking_(parts_->nonblocking),
      atomics_(parts_->atomics), signals_(parts_->signals), device_copies_(parts_->device_copies) {}

transfers::~transfers() = default;

std::size_t transfers::stream_threshold() const { return blocking_.stream_threshold(); }

bool transfers::all_direct() const {
    return !parts_->remote.has_peers() && !device_copies_.enabled();
}

result<path> transfers::move(direction dir, world_rank peer, const void *remote, void *local,
                             std::size_t nbytes) {
    if (nbytes == 0) {
        return path::self;
    }
    auto location = space_.locate(peer, remote, nbytes);
    DIOMP_TRY(location);
    return blocking_.move_at(dir, peer, location.value(), local, nbytes);
}

result<path> transfers::start_box(direction dir, world_rank peer, const void *remote, void *local,
                                  const box &shape, ompx_event_t *event) {
    auto made = box_walk::make(shape);
    DIOMP_TRY(made);
    box_walk const &walk = made.value();
    if (event != nullptr) {
        *event = nullptr;
    }
    if (walk.empty()) {
        return path::self;
    }
    auto location = space_.locate(peer, remote, walk.remote_extent());
    DIOMP_TRY(location);
    return parts_->remote.is_remote(peer)
               ? nonblocking_.start_box_at(dir, peer, location.value(), local, walk, event)
               : boxes_.move_box_at(dir, peer, location.value(), local, walk);
}

status transfers::flush(world_rank peer) {
    if (parts_->remote.is_remote(peer)) {
        DIOMP_TRY(parts_->remote.flush(peer));
    }
    full_fence();
    return {};
}

status transfers::finish() {
    DIOMP_TRY(nonblocking().complete_contexts());
    return fence();
}

status transfers::fence() {
    if (parts_->remote.has_peers()) {
        messaging::pooled_completion pooled_completion;
        DIOMP_TRY(parts_->remote.begin_flush_all(pooled_completion.count()));
        DIOMP_TRY(device_copies_.wait());
        DIOMP_TRY(pooled_completion.wait(
            engine_, [] { return std::string("waiting for puts to be complete at all ranks"); }));
        DIOMP_TRY(nonblocking_.wait_for_implicit());
        DIOMP_TRY(parts_->acks.wait());
    } else {
        DIOMP_TRY(device_copies_.wait());
    }
    full_fence();
    return {};
}

status transfers::fence_rank(world_rank peer) {
    if (parts_->remote.is_remote(peer)) {
        return fence(std::span(&peer, 1));
    }
    DIOMP_TRY(device_copies_.wait());
    full_fence();
    return {};
}

status transfers::order() {
    if (!all_direct()) {
        return fence();
    }
    std::atomic_thread_fence(std::memory_order_release);
    return {};
}

status transfers::fence(std::span<const world_rank> peers) {
    if (parts_->remote.has_peers()) {
        messaging::pooled_completion pooled_completion;
        for (world_rank const peer : peers) {
            if (parts_->remote.is_remote(peer)) {
                DIOMP_TRY(parts_->remote.begin_flush(peer, pooled_completion.count()));
            }
        }
        DIOMP_TRY(pooled_completion.wait(engine_, [&] {
            return peers.size() == 1
                       ? fmt::format("waiting for puts to be complete at rank {}",
                                     peers.front().value())
                       : fmt::format("waiting for puts to be complete at {} ranks", peers.size());
        }));
        DIOMP_TRY(nonblocking_.wait_for_implicit());
        DIOMP_TRY(parts_->acks.wait());
    }
    DIOMP_TRY(device_copies_.wait());
    full_fence();
    return {};
}

} // namespace diomp::rma
