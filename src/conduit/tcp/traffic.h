// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All connections of a rank: opening them, serving what comes, and what becomes of lost peers.
#pragma once

#include "base/secure/opening_connections.h"
#include "base/secure/pending_connections.h"
#include "conduit/message_queue.h"
#include "conduit/tcp/address.h"
#include "conduit/tcp/peer.h"
#include "conduit/tcp/tuning.h"
#include "launch/launch.h"

#include <functional>

namespace diomp::conduit::tcp {

/// At the launcher: how a rank is reached, its host, and rank 0's secret.
inline constexpr const char *card_key = "tcp";
inline constexpr const char *host_key = "tcp.host";
inline constexpr const char *secret_key = "tcp.secret";

class traffic final : public frame_taker {
public:
    using loss_sink = std::function<void(peer &lost, const std::string &why)>;

    /// Collective. `lose` is told of connections that break, by any thread.
    static result<std::unique_ptr<traffic>> create(launch::launcher &launcher, const window &window,
                                                   const conduit_options &options,
                                                   arrivals &arrived, loss_sink lose);
    ~traffic() override;
    traffic(const traffic &) = delete;
    traffic &operator=(const traffic &) = delete;

    /// Made on first use. Any thread.
    [[nodiscard]] peer &peer_of(world_rank rank);
    [[nodiscard]] peer *find_peer(world_rank rank) const { return peers_.find(rank); }
    [[nodiscard]] std::span<const std::unique_ptr<peer>> spoken_to() const { return peers_.all(); }
    /// The connection to a peer, opened on first use; nullptr, and the peer has failed, if it
    /// cannot be.
    [[nodiscard]] link *way_to(peer &to);

    /// Reads and writes what there is. True if anything moved.
    bool advance();
    /// As advance(), for the thread that sleeps on epoll_fd(): looks at all descriptors.
    bool serve();
    /// Watches for room where something waits. False: there is something to do.
    bool arm();
    [[nodiscard]] int epoll_fd() const { return epoll_.get(); }

    /// Changes with every advance().
    [[nodiscard]] std::uint32_t round() const {
        return num_advances_.load(std::memory_order_relaxed);
    }

    void divert_bulk(const std::byte *place);
    /// Connections may be closed from now on, and no further rank connects: the port is closed.
    void expect_ends();

private:
    /// What has been tried to reach a rank.
    struct attempts {
        std::size_t next_way = 0;
        int num_closed = 0; ///< how often the address before that has closed the connection
    };

    traffic(launch::launcher &launcher, const window &window, const conduit_options &options,
            tuning how, arrivals &arrived, loss_sink lose);
    status listen_for_ranks();
    [[nodiscard]] secure::handshake_options handshake_options() const;

    std::byte *place_body(link &on, const frame &head, std::span<const std::byte> front) override;
    std::byte *place_bulk(link &on, const frame &head, std::span<const std::byte> front);
    bool take(link &on, const frame &head, std::span<const std::byte> front,
              const std::byte *body) override;
    bool take_answer(link &on, peer &from, const frame &head);

    [[nodiscard]] bool is_ours(std::uint64_t address, std::size_t nbytes) const;
    [[nodiscard]] std::span<const std::unique_ptr<link>> links() const {
        return {links_.data(), num_links_.load(std::memory_order_acquire)};
    }
    /// False if there are more than a job could have.
    [[nodiscard]] bool has_place() const {
        return num_links_.load(std::memory_order_relaxed) < links_.size();
    }
    link &add(std::unique_ptr<link> made);
    void watch(link &open);
    /// Nothing comes or leaves there any more.
    void retire(link &over);
    /// The one that is alive; nullptr if there are several, or none.
    [[nodiscard]] link *sole_link() const;
    void watch_descriptor(int operation, link &which, bool for_room) const;
    bool accept_proven();
    void admit(secure::pending_connections::proven_connection from);
    /// Under links_mutex_. True if the connection is the one that both ends use.
    [[nodiscard]] bool adopt(secure::pending_connections::proven_connection from, peer &known);
    void note_joined(peer &known);
    void stop_listening();
    bool advance_openings();
    [[nodiscard]] status end_opening(secure::opening_connections::result_of_attempt ended,
                                     peer &target);
    bool look_at_descriptors();
    bool ship_all(bool also_nested = false);
    void mend(link &which);
    [[nodiscard]] status open_next_way(peer &target, const std::string &why_not_before);

    launch::launcher &launcher_;
    world_rank own_rank_;
    arrivals &arrived_;
    loss_sink lose_;
    tuning tuning_;
    std::uint64_t slot_begin_;
    std::size_t slot_bytes_;
    card own_card_;
    std::vector<in6_addr> local_addresses_; ///< of this host
    std::atomic<int> num_missing_;          ///< ranks that may still want to connect
    bool encrypts_;
    secure::secret secret_; ///< the job's
    unique_fd epoll_;
    std::mutex pending_mutex_; ///< never held together with links_mutex_
    std::optional<secure::pending_connections> pending_;
    std::atomic<bool> expects_ends_{false};

    peer_table<peer> peers_;
    std::mutex links_mutex_;                             ///< of who adds, opens or mends one
    std::vector<std::unique_ptr<link>> links_;           ///< first num_links_ ones; never moves
    std::vector<attempts> attempts_;                     ///< by rank
    std::optional<secure::opening_connections> opening_; ///< under links_mutex_; tags are ranks
    std::atomic<std::size_t> num_links_{0};
    std::atomic<int> num_alive_{0};     ///< of them, open ones
    std::atomic<int> num_unsettled_{0}; ///< links with something to write or to mend
    std::atomic<std::uint32_t> num_advances_{0};
};

} // namespace diomp::conduit::tcp
