// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers of boxes and sections: run by run, or all rows in one operation of the conduit.
#pragma once

#include "memory/location.h"
#include "rma/box.h"
#include "rma/path.h"

#include <span>

namespace diomp::memory {
class address_space;
}

namespace diomp::rma {

class blocking_transfers;
class remote_transfers;

/// Any thread. Puts block until the source may be reused, gets until the data has arrived.
class box_transfers {
public:
    box_transfers(memory::address_space &space, blocking_transfers &blocking,
                  remote_transfers &remote)
        : space_(space), blocking_(blocking), remote_(remote) {}

    /// Put and get of a box or a section. Pointers are the starts of a box's arrays, and address
    /// the first elements of sections.
    template <typename Shape>
    result<path> put(world_rank peer, void *remote, const void *local, const Shape &shape) {
        return move(direction::put, peer, remote, const_cast<void *>(local), box_walk::make(shape));
    }
    template <typename Shape>
    result<path> get(world_rank peer, const void *remote, void *local, const Shape &shape) {
        return move(direction::get, peer, remote, local, box_walk::make(shape));
    }
    /// Put or get with a remote side that is located already; `location` and `local` are the starts
    /// of the arrays. All runs are started before the call waits for the first.
    result<path> move_box_at(direction dir, world_rank peer, const memory::location &location,
                             void *local, const box_walk &walk);
    result<path> move_runs_at(direction dir, world_rank peer, const memory::location &location,
                              void *local, std::span<const run> runs);

private:
    result<path> move(direction dir, world_rank peer, const void *remote, void *local,
                      result<box_walk> made);
    result<path> move_remote_box(direction dir, world_rank peer, const memory::location &location,
                                 std::byte *local, const box_walk &walk);

    memory::address_space &space_;
    blocking_transfers &blocking_;
    remote_transfers &remote_;
};

} // namespace diomp::rma
