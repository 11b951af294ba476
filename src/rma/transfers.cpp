// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/memory.h"
#include "rma/rma.h"

#include <fmt/core.h>

#include <atomic>

namespace diomp::rma {

transfers::transfers(memory::address_space &space, memory::segment &own,
                     memory::directory &directory, messaging::engine &engine,
                     messaging::call_service &calls, const options &options)
    : space_(space), engine_(engine), requests_(own, directory, engine, calls, acks_),
      signals_(space, own, directory, engine, acks_, blocking_, boxes_, remote_, atomics_),
      acks_(engine), remote_(options.num_ranks, space, own, directory, engine),
      blocking_(options.self, options.stream_threshold_bytes, own, engine, requests_, remote_),
      boxes_(space, blocking_, remote_),
      nonblocking_(space, engine, blocking_, remote_, options.on_transfer_complete),
      atomics_(options.self, space, engine, requests_, remote_), device_copies_(engine) {}

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
    return remote_.is_remote(peer)
               ? nonblocking_.start_box_at(dir, peer, location.value(), local, walk, event)
               : boxes_.move_box_at(dir, peer, location.value(), local, walk);
}

status transfers::flush(world_rank peer) {
    if (remote_.is_remote(peer)) {
        DIOMP_TRY(remote_.flush(peer));
    }
    full_fence();
    return {};
}

status transfers::fence() {
    if (remote_.has_peers()) {
        messaging::pooled_completion pooled_completion;
        DIOMP_TRY(remote_.begin_flush_all(pooled_completion.count()));
        DIOMP_TRY(device_copies_.wait());
        DIOMP_TRY(pooled_completion.wait(
            engine_, [] { return std::string("waiting for puts to be complete at all ranks"); }));
        DIOMP_TRY(nonblocking_.wait_for_implicit());
        DIOMP_TRY(acks_.wait());
    } else {
        DIOMP_TRY(device_copies_.wait());
    }
    full_fence();
    return {};
}

status transfers::fence_rank(world_rank peer) {
    if (remote_.is_remote(peer)) {
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
    if (remote_.has_peers()) {
        messaging::pooled_completion pooled_completion;
        for (world_rank const peer : peers) {
            if (remote_.is_remote(peer)) {
                DIOMP_TRY(remote_.begin_flush(peer, pooled_completion.count()));
            }
        }
        DIOMP_TRY(pooled_completion.wait(engine_, [&] {
            return fmt::format("waiting for puts to be complete at {} ranks of a group",
                               peers.size());
        }));
        DIOMP_TRY(nonblocking_.wait_for_implicit());
        DIOMP_TRY(acks_.wait());
    }
    DIOMP_TRY(device_copies_.wait());
    full_fence();
    return {};
}

} // namespace diomp::rma
