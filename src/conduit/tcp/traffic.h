// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All connections of a rank: opening them, serving what comes, and what becomes of lost peers.
#pragma once

#include "conduit/message_queue.h"
#include "conduit/tcp/address.h"
#include "conduit/tcp/peer.h"
#include "launch/launch.h"

#include <functional>

namespace diomp::conduit::tcp {

/// At the launcher: how a rank is reached, its host, and rank 0's secret.
inline constexpr const char *card_key = "tcp";
inline constexpr const char *host_key = "tcp.host";
inline constexpr const char *cookie_key = "tcp.cookie";

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
    /// Tries the next address of what takes too long to open. True if anything is still opening.
    bool look_at_openings();
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
    /// Connections may be closed from now on.
    void expect_ends() { expects_ends_.store(true, std::memory_order_relaxed); }

private:
    traffic(launch::launcher &launcher, const window &window, tuning how, arrivals &arrived,
            loss_sink lose);

    std::byte *place_body(link &on, const frame &head, std::span<const std::byte> front) override;
    std::byte *place_bulk(link &on, const frame &head, std::span<const std::byte> front);
    bool take(link &on, const frame &head, std::span<const std::byte> front,
              const std::byte *body) override;
    bool greet(link &on, const greeting &from) override;
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
    void add_accepted(unique_fd fd);
    /// Nothing comes or leaves there any more.
    void retire(link &over);
    /// The one that is alive; nullptr if there are several, or none.
    [[nodiscard]] link *sole_link() const;
    void watch_descriptor(int operation, link &which, bool for_room) const;
    void accept_all();
    bool look_at_descriptors();
    bool ship_all(bool also_nested = false);
    void mend(link &which);
    bool open_next_way(link &which, peer &target);

    launch::launcher &launcher_;
    world_rank own_rank_;
    arrivals &arrived_;
    loss_sink lose_;
    tuning tuning_;
    std::uint64_t slot_begin_;
    std::size_t slot_bytes_;
    card own_card_;
    greeting greeting_;
    unique_fd listener_;
    unique_fd epoll_;
    std::atomic<bool> expects_ends_{false};

    peer_table<peer> peers_;
    std::mutex links_mutex_;                   ///< of who adds, opens or mends one
    std::vector<std::unique_ptr<link>> links_; ///< first num_links_ ones; never moves
    std::vector<std::size_t> next_way_;        ///< by rank
    std::atomic<std::size_t> num_links_{0};
    std::atomic<int> num_alive_{0};     ///< of them
    std::vector<link *> vacant_;        ///< under links_mutex_: what strangers have left
    std::atomic<int> num_unsettled_{0}; ///< links with something to write or to mend
    std::atomic<std::uint32_t> num_advances_{0};
};

} // namespace diomp::conduit::tcp
