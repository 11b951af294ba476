// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contiguous transfers whose remote side is located already, by the path that reaches it: copies by
// the calling core, the network, cross-memory attach or messages.
#pragma once

#include "base/result.h"
#include "memory/location.h"
#include "rma/copy.h"
#include "rma/path.h"

namespace diomp::rma {

class registered_transfers;
class remote_transfers;

/// Any thread.
class blocking_transfers {
public:
    blocking_transfers(world_rank self, std::size_t stream_threshold_bytes,
                       remote_transfers &remote, registered_transfers &registered)
        : self_(self), stream_threshold_bytes_(stream_threshold_bytes), remote_(remote),
          registered_(registered) {}

    /// A put blocks until `local`, which it does not change, may be reused.
    result<path> move_at(direction dir, world_rank peer, const memory::location &location,
                         void *local, std::size_t nbytes) {
        if (location.direct == nullptr) {
            return move_unmapped(dir, peer, location, local, nbytes);
        }
        if (dir == direction::put) {
            put_bytes(location.direct, local, nbytes, stream_threshold_bytes_);
        } else {
            copy_bytes(local, location.direct, nbytes, stream_threshold_bytes_);
        }
        return direct_path(peer);
    }

    /// The path of a transfer with mapped memory.
    [[nodiscard]] path direct_path(world_rank peer) const {
        return peer == self_ ? path::self : path::direct;
    }
    [[nodiscard]] std::size_t stream_threshold() const { return stream_threshold_bytes_; }

private:
    result<path> move_unmapped(direction dir, world_rank peer, const memory::location &location,
                               void *local, std::size_t nbytes);

    world_rank self_;
    std::size_t stream_threshold_bytes_;
    remote_transfers &remote_;
    registered_transfers &registered_;
};

} // namespace diomp::rma
