// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers with registered private memory of ranks of this node: by cross-memory attach or, where
// the system forbids that, through a bounce buffer in this rank's segment, which the target's
// message handler reads or writes.
#pragma once

#include "rma/internal/target_requests.h"
#include "rma/path.h"

#include <atomic>
#include <mutex>

namespace diomp::rma {

/// Any thread.
class registered_transfers {
public:
    registered_transfers(world_rank self, memory::segment &own, messaging::engine &engine,
                         target_requests &requests)
        : self_(self), own_(own), engine_(engine), requests_(requests) {}
    ~registered_transfers();

    /// Blocks until the bytes have arrived.
    result<path> move(direction dir, world_rank peer, std::uint64_t remote, void *local,
                      std::size_t nbytes);

private:
    status move_by_messages(direction dir, world_rank peer, std::uint64_t remote, void *local,
                            std::size_t nbytes);
    std::byte *bounce_buffer();

    world_rank self_;
    memory::segment &own_;
    messaging::engine &engine_;
    target_requests &requests_;
    std::atomic<bool> attach_forbidden_{false};
    std::mutex bounce_mutex_; ///< held during a transfer by messages; not taken in handlers
    std::byte *bounce_ = nullptr;
    std::uint64_t bounce_offset_ = 0;
};

} // namespace diomp::rma
