// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The connections of a rank: which of two is used, their progress, and the failure of peers.
#pragma once

#include "transport/create.h"
#include "transport/tcp/connection_table.h"
#include "transport/tcp/connector.h"
#include "transport/tcp/frame_dispatcher.h"

#include <functional>

namespace diomp::transport::tcp {

class iface {
public:
    using peer_failure_handler = std::function<void(peer &lost, const std::string &why)>;

    /// Collective. `on_peer_failure` is called, by any thread, when a connection fails.
    static result<std::unique_ptr<iface>> create(launch::launcher &launcher, const arena &arena,
                                                 const conduit_options &options, arrivals &arrived,
                                                 peer_failure_handler on_peer_failure);

    /// The peer of a rank, created on first use. Any thread.
    [[nodiscard]] peer &peer_of(world_rank rank);
    [[nodiscard]] peer *find_peer(world_rank rank) const { return peers_.find(rank); }
    [[nodiscard]] std::span<const std::unique_ptr<peer>> all_peers() const { return peers_.all(); }
    /// The connection to a peer, opened on first use. nullptr if that is impossible; the peer has
    /// failed then.
    [[nodiscard]] connection *find_or_connect(peer &to);

    /// Makes progress: reads and writes without blocking. True if any data was moved.
    bool advance();
    /// Progress on all descriptors, for the thread that sleeps on those of connections().
    bool serve();
    [[nodiscard]] connection_table &connections() { return connections_; }

    /// Changes with every advance().
    [[nodiscard]] std::uint32_t round() const {
        return num_advances_.load(std::memory_order_relaxed);
    }

    /// No body is received into `buffer` from now on.
    void revoke_recv_buffer(const std::byte *buffer);
    /// Closes the listening port; from now on peers may close their connections.
    void begin_shutdown();

private:
    iface(launch::launcher &launcher, const arena &arena, const conduit_options &options,
          tuning how, arrivals &arrived, peer_failure_handler on_peer_failure);
    status start(const std::string &interfaces);

    bool accept_peers();
    void accept_peer(acceptor::proven_connection from);
    /// Under connections_mutex_. True if the new connection is the one that both sides use.
    [[nodiscard]] bool adopt_connection(acceptor::proven_connection from, peer &known);
    bool progress_openings();
    [[nodiscard]] status finish_opening(connector::attempt_result ended, peer &target);
    bool poll_descriptors();
    bool transmit_all(bool also_coalesced = false);
    void close_if_broken(connection &which);

    launch::launcher &launcher_;
    peer_failure_handler on_peer_failure_;
    tuning tuning_;
    credentials credentials_;
    acceptor acceptor_;
    frame_dispatcher dispatcher_;
    std::atomic<bool> is_shutting_down_{false};

    peer_table<peer> peers_;
    std::mutex connections_mutex_; ///< held to add, open or close a connection
    connector connector_;          ///< under connections_mutex_
    connection_table connections_;
    std::atomic<std::uint32_t> num_advances_{0};
};

} // namespace diomp::transport::tcp
