// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/box_transfers.h"

#include "memory/memory.h"
#include "messaging/pooled_completion.h"
#include "rma/blocking_transfers.h"
#include "rma/internal/remote_transfers.h"

#include <algorithm>
#include <limits>

namespace diomp::rma {

result<path> box_transfers::move(direction dir, world_rank peer, const void *remote, void *local,
                                 result<box_walk> made) {
    DIOMP_TRY(made);
    box_walk const &walk = made.value();
    if (walk.empty()) {
        return path::self;
    }
    auto location = space_.locate(
        peer, static_cast<const std::byte *>(remote) + walk.remote_shift(), walk.remote_extent());
    DIOMP_TRY(location);
    return move_box_at(dir, peer, location.value(),
                       static_cast<std::byte *>(local) + walk.local_shift(), walk);
}

result<path> box_transfers::move_box_at(direction dir, world_rank peer,
                                        const memory::location &location, void *local,
                                        const box_walk &walk) {
    auto *const here = static_cast<std::byte *>(local);
    std::byte *const there = location.direct;
    if (there == nullptr) {
        return remote_.is_remote(peer) ? move_remote_box(dir, peer, location, here, walk)
                                       : move_runs_at(dir, peer, location, local, walk.runs());
    }
    // Runs are usually short: no streaming.
    constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
    walk.for_each_run([&](std::size_t remote_offset, std::size_t local_offset, std::size_t nbytes) {
        if (dir == direction::put) {
            copy_bytes(there + remote_offset, here + local_offset, nbytes, never);
        } else {
            copy_bytes(here + local_offset, there + remote_offset, nbytes, never);
        }
    });
    return blocking_.direct_path(peer);
}

result<path> box_transfers::move_runs_at(direction dir, world_rank peer,
                                         const memory::location &location, void *local,
                                         std::span<const run> runs) {
    auto *const here = static_cast<std::byte *>(local);
    if (!remote_.is_remote(peer)) {
        path taken = path::self;
        for (const run &each : runs) {
            auto moved = blocking_.move_at(dir, peer, at_offset(location, each.remote),
                                           here + each.local, each.nbytes);
            DIOMP_TRY(moved);
            taken = moved.value();
        }
        return taken;
    }
    // The conduit aggregates short puts.
    messaging::pooled_completion pooled_completion;
    status started;
    std::size_t extent = 0;
    for (const run &each : runs) {
        extent = std::max(extent, each.remote + each.nbytes);
        if (started) {
            started = remote_.begin(dir, peer, at_offset(location, each.remote), here + each.local,
                                    each.nbytes, pooled_completion.count());
        }
    }
    // Also after an error: transfers that have started still use the caller's array.
    status ended = remote_.wait_for(dir, peer, location, extent, pooled_completion);
    DIOMP_TRY(std::move(started));
    DIOMP_TRY(std::move(ended));
    return remote_transfers::path_of(location);
}

result<path> box_transfers::move_remote_box(direction dir, world_rank peer,
                                            const memory::location &location, std::byte *local,
                                            const box_walk &walk) {
    messaging::pooled_completion pooled_completion;
    status started = remote_.begin_box(dir, peer, location, local, walk, pooled_completion.count());
    // Also after an error: transfers that have started still use the caller's array.
    status ended = remote_.wait_for(dir, peer, location, walk.remote_extent(), pooled_completion);
    DIOMP_TRY(std::move(started));
    DIOMP_TRY(std::move(ended));
    return remote_transfers::path_of(location);
}

} // namespace diomp::rma
