// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers between memory of other ranks and memory of the session's device that the network
// reads and writes. The session starts all of them, whatever their direction: so it is the owner of
// the memory that says whether an address is one of the device's, and they happen at their place in
// the queue.
#pragma once

#include "base/result.h"
#include "conduit/flight.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "offload/service/target.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace diomp::offload::service {

/// What has been moved with the device's own memory, for the log.
struct moved_bytes {
    std::atomic<std::uint64_t> straight{0}; ///< between the network and the device
    std::atomic<std::uint64_t> by_way{0};   ///< changed over in memory of the session
};

/// A range of the device's memory that the network may work with. Errors: OMPX_ERR_RANGE,
/// OMPX_ERR_UNSUPPORTED.
result<network_range> hold_for_network(const remote::world &ranks, const target &device,
                                       std::uint64_t address, std::size_t nbytes);

/// Those of one queue, between the client's memory and the device's. One thread at a time.
class straight_transfers {
public:
    /// Starts to bring the client's bytes here.
    status fetch(remote::world &ranks, const target &device, const remote::straight_transfer &what);
    /// Starts to bring bytes from here to the client.
    status deliver(remote::world &ranks, const target &device,
                   const remote::straight_transfer &what);
    /// Until all that has been started is over, failed or not. Costs nothing if there is nothing.
    status wait(remote::world &ranks);

private:
    enum class way { fetch, deliver };
    struct piece {
        std::uint64_t begin;
        std::uint64_t end;
        network_range memory;
    };
    result<conduit::memory_ends> begin(remote::world &ranks, const target &device, way going,
                                       const remote::straight_transfer &what);
    [[nodiscard]] bool must_follow(way going, const remote::straight_transfer &what) const;

    way going_ = way::fetch;
    std::optional<conduit::flight> flight_;
    std::vector<piece> pieces_;
    bool has_put_ = false;
};

} // namespace diomp::offload::service
