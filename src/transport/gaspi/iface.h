// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Peers, and the transfers and messages between them. One lock is enough: GPI-2's TCP device is one
// thread per process, and its work for an operation takes longer than the work under the lock.
#pragma once

#include "launch/launch.h"
#include "transport/gaspi/message_receiver.h"
#include "transport/gaspi/rma_operations.h"

#include <functional>

namespace diomp::transport::gaspi {

/// Any thread, unless stated otherwise.
class iface {
public:
    using peer_lost_callback = std::function<void(peer &lost, const std::string &why)>;

    /// Collective. `on_peer_lost` is called for each lost connection, by any thread.
    static result<std::unique_ptr<iface>> create(launch::launcher &launcher, const arena &arena,
                                                 peer_lost_callback on_peer_lost);
    iface(const iface &) = delete;
    iface &operator=(const iface &) = delete;

    /// Contracts: rma_transport.h, active_messages.h.
    status put(world_rank rank, std::uint64_t remote, const void *source, std::size_t nbytes,
               completion &source_free);
    status get(world_rank rank, std::uint64_t remote, void *destination, std::size_t nbytes,
               completion &done);
    status flush(world_rank rank, completion &done) { return flush(peer_of(rank), done, false); }
    status flush_all(completion &done, bool also_messages = false);
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload);
    result<bool> put_with_message(world_rank rank, std::uint64_t remote,
                                  std::span<const std::byte> source, handler_id handler,
                                  std::span<const std::byte> payload, completion &source_free);
    [[nodiscard]] std::size_t max_message_bytes() const;
    [[nodiscard]] message_receiver &receiver() { return receiver_; }

    /// Makes progress, unless another thread does. True if something progressed.
    bool advance();
    [[nodiscard]] std::string describe_outstanding() const;
    [[nodiscard]] std::string describe_path(world_rank rank) const;
    [[nodiscard]] std::span<const std::unique_ptr<peer>> peers() const { return peers_; }
    /// See network_peer::fail.
    std::string fail(peer &lost, const std::string &why);
    /// Requests a sign of life from the peer.
    void ping(peer &silent);

private:
    using outcome = queue_pool::outcome;

    iface(world_rank self, peer_lost_callback on_peer_lost, std::unique_ptr<memory> registered,
          const std::vector<std::string> &hosts);
    [[nodiscard]] peer &peer_of(world_rank rank) const { return *peers_[rank.index()]; }
    status flush(peer &to, completion &done, bool also_messages);
    template <typename Attempt>
    status retry_until_started(peer &at, Attempt &&attempt);

    peer_lost_callback on_peer_lost_;
    std::unique_ptr<memory> memory_;
    std::vector<std::unique_ptr<peer>> peers_; ///< [world rank]
    mutable std::mutex mutex_;
    queue_pool queues_;
    rma_operations rma_;
    message_sender sender_;
    message_receiver receiver_;
};

} // namespace diomp::transport::gaspi
