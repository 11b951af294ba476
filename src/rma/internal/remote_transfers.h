// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers with ranks that are not mapped here: by the conduit's put and get, or, for registered
// private memory, by messages. A put is complete at the target after a flush.
#pragma once

#include "memory/location.h"
#include "messaging/pooled_completion.h"
#include "rma/box.h"
#include "rma/internal/message_copies.h"
#include "rma/path.h"
#include "transport/conduit.h"

#include <string>

namespace diomp::memory {
class address_space;
}

namespace diomp::rma {

/// Any thread. Create before engine.start().
class remote_transfers {
public:
    remote_transfers(int num_ranks, memory::address_space &space, memory::segment &own,
                     memory::directory &directory, messaging::engine &engine);

    /// Whether any rank is remote.
    [[nodiscard]] bool has_peers() const { return has_peers_; }
    [[nodiscard]] bool is_remote(world_rank peer) const {
        return has_peers_ && engine_.transport().direct_base(peer) == nullptr;
    }

    /// Starts a transfer. `count` counts until the source may be reused, or the data has arrived.
    status begin(direction dir, world_rank peer, const memory::location &location, void *local,
                 std::size_t nbytes, transport::completion &count);
    /// Starts all rows of a box in one operation. False: the conduit cannot, nothing was started.
    result<bool> begin_rows(direction dir, world_rank peer, const memory::location &location,
                            std::byte *local, const box_walk &walk, transport::completion &count);
    /// Starts all runs of a box, in one operation if the conduit can. After an error, the runs
    /// that have started still use `local` and are pending in `count`.
    status begin_box(direction dir, world_rank peer, const memory::location &location,
                     std::byte *local, const box_walk &walk, transport::completion &count);
    /// Waits for a transfer that was started. `location` and `nbytes` are for the error.
    status wait_for(direction dir, world_rank peer, const memory::location &location,
                    std::size_t nbytes, messaging::pooled_completion &pooled_completion);
    result<path> move(direction dir, world_rank peer, const memory::location &location, void *local,
                      std::size_t nbytes);
    [[nodiscard]] static path path_of(const memory::location &location) {
        return location.in_segment ? path::conduit : path::message;
    }

    /// Start the completion of all puts to a peer, or to all.
    status begin_flush(world_rank peer, transport::completion &count) {
        transport::conduit &transport = engine_.transport();
        return transport.direct_base(peer) != nullptr ? status{}
                                                      : transport.rma()->flush(peer, count);
    }
    status begin_flush_all(transport::completion &count) {
        transport::rma_transport *const network = engine_.transport().rma();
        return network == nullptr ? status{} : network->flush_all(count);
    }
    /// Starts the flush of a put into the same count, which also receives failures.
    void flush_into(world_rank peer, transport::completion &count);
    /// Completes the puts to a peer.
    status flush(world_rank peer);

    /// After the owner's refusal: drops the cached ranges of the peer and composes the error.
    status refused(world_rank peer, const memory::location &location, std::size_t nbytes,
                   access how);
    /// "waiting for a put of ...".
    static std::string describe(direction dir, world_rank peer, std::size_t nbytes);

private:
    memory::address_space &space_;
    memory::directory &directory_;
    messaging::engine &engine_;
    message_copies copies_;
    bool has_peers_ = false;
};

} // namespace diomp::rma
