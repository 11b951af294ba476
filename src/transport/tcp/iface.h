// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The connections of a rank: which of two is used, their progress, and the failure of peers.
#pragma once

#include "base/result.h"
#include "transport/common/network_peer.h"
#include "transport/tcp/connection_table.h"
#include "transport/tcp/peer.h"
#include "transport/types.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace diomp::launch {
class launcher;
}

namespace diomp::secure {
struct attempt_result;
struct proven_connection;
} // namespace diomp::secure

namespace diomp::transport {
class arena;
class arrivals;
struct conduit_options;
} // namespace diomp::transport

namespace diomp::transport::tcp {

class connection;
class tuning;

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

    /// Closes the connection to a peer that has failed; no other one is opened or accepted.
    void disconnect(peer &lost, const std::string &why);

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

    ~iface();
    iface(const iface &) = delete;
    iface &operator=(const iface &) = delete;

private:
    struct setup; ///< opens, accepts and authenticates connections

    iface(launch::launcher &launcher, const arena &arena, const conduit_options &options,
          const tuning &how, arrivals &arrived, peer_failure_handler on_peer_failure);
    status start(const std::string &interfaces);

    bool accept_peers();
    void accept_peer(secure::proven_connection from);
    /// Under connections_mutex_. True if the new connection is the one that both sides use.
    [[nodiscard]] bool adopt_connection(secure::proven_connection from, peer &known);
    bool progress_openings();
    [[nodiscard]] status finish_opening(secure::attempt_result ended, peer &target);
    /// Under connections_mutex_: starts to open the connection of a peer that has none, or a
    /// dormant one. An error if the peer cannot be reached.
    [[nodiscard]] status open_connection(peer &to);
    /// Under connections_mutex_: another socket will be needed.
    void make_space();
    void release(connection &which);
    bool poll_descriptors();
    [[nodiscard]] bool poll_descriptors_is_due(std::uint32_t num_advances);
    bool transmit_all(bool also_coalesced = false);
    void close_if_broken(connection &which);

    launch::launcher &launcher_;
    peer_failure_handler on_peer_failure_;
    std::unique_ptr<setup> const setup_;
    std::atomic<bool> is_shutting_down_{false};

    peer_table<peer> peers_;
    std::size_t const max_sockets_;
    std::mutex connections_mutex_; ///< held to add, open or close a connection
    connection_table connections_;
    std::atomic<std::uint32_t> num_advances_{0};
    std::atomic<std::chrono::steady_clock::duration> last_poll_{};
};

} // namespace diomp::transport::tcp
