// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers of a session: between its device, its slot and other ranks.
#pragma once

#include "messaging/pooled_completion.h"
#include "offload/service/peer_copies.h"
#include "offload/service/peer_fetches.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace diomp::offload::service {

/// Copies to one other device, or from it, that the network makes while their starter goes on, and
/// what they use until they are complete.
struct started_copies {
    world_rank with{0};
    bool are_to_it = true;
    bool are_flushed = false; ///< no copy may be added
    std::size_t nbytes = 0;
    messaging::pooled_completion completion;
    std::vector<std::unique_ptr<std::string>> staged;
    std::vector<network_range> memory;
};

/// Any thread.
class session_transfers {
public:
    /// `client`: the rank of the session's client among the `num_clients` of the world.
    session_transfers(target &device, int num_clients, world_rank client)
        : device_(device), client_(client), fetches_(device, moved_, num_clients) {}
    /// Call once the world is complete, before the functions below.
    void start(remote::world &ranks);

    /// Starts a copy: operation::copy, from this device, or pull, from the slot of another one to
    /// this device's. Adds it to `copies`, which are null or begun with the same device and
    /// operation; they remain null if it is complete, as all are that the network does not make.
    status begin_copy(std::unique_ptr<started_copies> &copies, remote::operation what,
                      world_rank other, std::uint64_t destination, std::uint64_t source,
                      std::size_t nbytes);
    /// The copies will be complete at their target without another call.
    status flush(started_copies &copies);
    /// Waits for copies, which may be null, and returns their outcome.
    status finish(const std::unique_ptr<started_copies> &copies);
    /// Starts a transfer of `queue` between memory of the client and the device; `op` is fetch or
    /// deliver.
    status begin_zero_copy(zero_copy_transfers &queue, remote::operation op,
                           const remote::zero_copy_transfer &what);
    /// Waits for the transfers of `queue`.
    status finish_zero_copy(zero_copy_transfers &queue) { return queue.wait(*ranks_, client_); }
    /// Returns pages of the slot; `ranges`: the parameters of operation::release_pages.
    status release_pages(packet_reader &ranges);

    [[nodiscard]] peer_copies &copies() { return copies_; }
    [[nodiscard]] peer_fetches &fetches() { return fetches_; }
    void on_peer_lost(world_rank peer, const std::string &why);
    [[nodiscard]] const moved_bytes &moved() const { return moved_; }

private:
    status copy_here(std::uint64_t destination, std::uint64_t source, std::size_t nbytes);
    [[nodiscard]] bool has(world_rank owner, std::uint64_t address, std::size_t nbytes) const;
    status push(std::unique_ptr<started_copies> &copies, world_rank to, std::uint64_t destination,
                std::uint64_t source, std::size_t nbytes);
    status pull(std::unique_ptr<started_copies> &copies, world_rank from, std::uint64_t destination,
                std::uint64_t source, std::size_t nbytes);
    status get_from_slot(std::unique_ptr<started_copies> &copies, world_rank from,
                         std::uint64_t destination, std::uint64_t source, std::size_t nbytes);
    status copy_to_slot(std::unique_ptr<started_copies> &copies, world_rank to,
                        std::uint64_t destination, std::uint64_t source, std::size_t nbytes);

    /// Copies to the slot of a device whose session shares memory with this one.
    status copy_in_node(world_rank to, std::uint64_t destination, std::uint64_t source,
                        std::size_t nbytes);

    target &device_;
    world_rank const client_;
    remote::world *ranks_ = nullptr;
    moved_bytes moved_;
    peer_copies copies_;
    peer_fetches fetches_;
};

} // namespace diomp::offload::service
