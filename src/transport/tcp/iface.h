// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All connections of a rank: opens them, handles incoming frames, and reports failed peers.
#pragma once

#include "base/secure/opening_connections.h"
#include "base/secure/pending_connections.h"
#include "launch/launch.h"
#include "transport/common/message_queue.h"
#include "transport/tcp/address.h"
#include "transport/tcp/peer.h"
#include "transport/tcp/tuning.h"

#include <functional>

namespace diomp::transport::tcp {

/// Keys in the launcher's key-value space: a rank's addresses, its host, and rank 0's secret.
inline constexpr const char *address_key = "tcp";
inline constexpr const char *host_key = "tcp.host";
inline constexpr const char *secret_key = "tcp.secret";

class iface final : public frame_handler {
public:
    using peer_failure_handler = std::function<void(peer &lost, const std::string &why)>;

    /// Collective. `on_peer_failure` is called, by any thread, when a connection fails.
    static result<std::unique_ptr<iface>> create(launch::launcher &launcher, const arena &arena,
                                                 const conduit_options &options, arrivals &arrived,
                                                 peer_failure_handler on_peer_failure);
    ~iface() override;
    iface(const iface &) = delete;
    iface &operator=(const iface &) = delete;

    /// The peer of a rank, created on first use. Any thread.
    [[nodiscard]] peer &peer_of(world_rank rank);
    [[nodiscard]] peer *find_peer(world_rank rank) const { return peers_.find(rank); }
    [[nodiscard]] std::span<const std::unique_ptr<peer>> all_peers() const { return peers_.all(); }
    /// The connection to a peer, opened on first use. nullptr if that is impossible; the peer has
    /// failed then.
    [[nodiscard]] connection *find_or_connect(peer &to);

    /// Makes progress: reads and writes without blocking. True if any data was moved.
    bool advance();
    /// Progress on all descriptors, for the thread that sleeps on epoll_fd().
    bool serve();
    /// Requests write events where data is queued. False: progress is possible now.
    bool arm();
    [[nodiscard]] int epoll_fd() const { return epoll_.get(); }

    /// Changes with every advance().
    [[nodiscard]] std::uint32_t round() const {
        return num_advances_.load(std::memory_order_relaxed);
    }

    void revoke_recv_buffer(const std::byte *buffer);
    /// Closes the listening port; from now on peers may close their connections.
    void begin_shutdown();

private:
    /// Attempts to connect to a rank.
    struct attempts {
        std::size_t next_address = 0;
        int num_closed = 0; ///< times that the previous address closed the connection
    };

    iface(launch::launcher &launcher, const arena &arena, const conduit_options &options,
          tuning how, arrivals &arrived, peer_failure_handler on_peer_failure);
    status listen_for_ranks();
    [[nodiscard]] secure::handshake_options handshake_options() const;

    std::byte *find_body_buffer(connection &conn, const frame &head,
                                std::span<const std::byte> front) override;
    std::byte *find_recv_buffer(connection &conn, const frame &head,
                                std::span<const std::byte> front);
    bool handle_frame(connection &conn, const frame &head, std::span<const std::byte> front,
                      const std::byte *body) override;
    bool handle_reply(connection &conn, peer &from, const frame &head);

    [[nodiscard]] bool is_in_segment(std::uint64_t address, std::size_t nbytes) const;
    [[nodiscard]] std::span<const std::unique_ptr<connection>> connections() const {
        return {connections_.data(), num_connections_.load(std::memory_order_acquire)};
    }
    /// False if there are more connections than a job can have.
    [[nodiscard]] bool has_capacity() const {
        return num_connections_.load(std::memory_order_relaxed) < connections_.size();
    }
    connection &add(std::unique_ptr<connection> made);
    void register_connection(connection &open);
    /// Removes a connection that is no longer used from epoll.
    void deregister(connection &old_connection);
    /// The only open connection; nullptr if there is none or more than one.
    [[nodiscard]] connection *sole_connection() const;
    void set_epoll_events(int operation, connection &which, bool for_write) const;
    bool accept_authenticated();
    void accept_peer(secure::pending_connections::proven_connection from);
    /// Under connections_mutex_. True if the new connection is the one that both sides use.
    [[nodiscard]] bool adopt_connection(secure::pending_connections::proven_connection from,
                                        peer &known);
    void note_connected(peer &known);
    void stop_listening();
    bool progress_openings();
    [[nodiscard]] status finish_opening(secure::opening_connections::attempt_result ended,
                                        peer &target);
    bool poll_descriptors();
    bool transmit_all(bool also_coalesced = false);
    void close_if_broken(connection &which);
    [[nodiscard]] status connect_next_address(peer &target, const std::string &previous_error);

    launch::launcher &launcher_;
    world_rank own_rank_;
    arrivals &arrived_;
    peer_failure_handler on_peer_failure_;
    tuning tuning_;
    std::uint64_t slot_begin_;
    std::size_t slot_bytes_;
    address_blob own_address_;
    std::vector<in6_addr> local_addresses_; ///< of this host
    std::atomic<int> num_unconnected_;      ///< ranks that may still connect
    bool encrypts_;
    secure::secret secret_; ///< the job's
    unique_fd epoll_;
    std::mutex pending_mutex_; ///< never held together with connections_mutex_
    std::optional<secure::pending_connections> pending_;
    std::atomic<bool> is_shutting_down_{false};

    peer_table<peer> peers_;
    std::mutex connections_mutex_;                         ///< held to add, open or close one
    std::vector<std::unique_ptr<connection>> connections_; ///< first num_connections_; never moves
    std::vector<std::atomic<bool>> is_watched_for_write_;
    std::vector<attempts> attempts_; ///< by rank
    std::optional<secure::opening_connections>
        opening_; ///< under connections_mutex_; tags are ranks
    std::atomic<std::size_t> num_connections_{0};
    std::atomic<int> num_alive_{0}; ///< open connections
    std::atomic<int> num_busy_{
        0}; ///< connections with data to write or broken, and coalescers with puts
    std::atomic<std::uint32_t> num_advances_{0};
};

} // namespace diomp::transport::tcp
