// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Zero-copy transfers between memory of other ranks and memory of the session's device that the
// network can access. The session starts all of them, in both directions: so the owner of the
// memory validates the device addresses, and the transfers run in the order of the queue.
#pragma once

#include "base/result.h"
#include "messaging/pooled_completion.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "offload/service/target.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace diomp::offload::service {

/// Bytes transferred to and from the device's own memory, for the log.
struct moved_bytes {
    std::atomic<std::uint64_t> zero_copy{0}; ///< between the network and the device
    std::atomic<std::uint64_t> staged{0};    ///< through memory of the session
};

/// Validates a range of the device's memory for the network, and keeps it allocated as long as the
/// result. Errors: OMPX_ERR_RANGE, OMPX_ERR_UNSUPPORTED.
result<network_range> retain_for_network(const remote::world &ranks, const target &device,
                                         std::uint64_t address, std::size_t nbytes);

/// Zero-copy transfers of one queue, between the client's memory and the device's. One thread at a
/// time.
class zero_copy_transfers {
public:
    /// Starts a get from the client's memory.
    status fetch(remote::world &ranks, world_rank client, const target &device,
                 const remote::zero_copy_transfer &what);
    /// Starts a put to the client's memory.
    status deliver(remote::world &ranks, world_rank client, const target &device,
                   const remote::zero_copy_transfer &what);
    /// Waits until all started transfers have completed or failed. Free if there are none.
    status wait(remote::world &ranks, world_rank client);

private:
    enum class direction { fetch, deliver };
    struct active_range {
        std::uint64_t begin;
        std::uint64_t end;
        network_range memory;
    };
    result<transport::memory_kinds> begin(remote::world &ranks, world_rank client,
                                          const target &device, direction dir,
                                          const remote::zero_copy_transfer &what);
    [[nodiscard]] bool conflicts(direction dir, const remote::zero_copy_transfer &what) const;

    direction dir_ = direction::fetch;
    std::optional<messaging::pooled_completion> completion_;
    std::vector<active_range> active_ranges_;
    bool has_put_ = false;
};

} // namespace diomp::offload::service
