// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workers, peers and progress, below the calls of the network.
#pragma once

#include "base/unique_fd.h"
#include "transport/arena.h"
#include "transport/ucx/am_receiver.h"

#include <functional>

namespace diomp::transport::ucx {

/// Any thread, unless stated otherwise.
class iface {
public:
    using peer_failure_handler = std::function<void(peer &lost, const std::string &why)>;

    /// Collective. `on_peer_failure` is called, by any thread, when a connection fails.
    static result<std::unique_ptr<iface>> create(launch::launcher &launcher, const arena &arena,
                                                 const conduit_options &options, arrivals &arrived,
                                                 peer_failure_handler on_peer_failure);
    ~iface();
    iface(const iface &) = delete;
    iface &operator=(const iface &) = delete;

    /// nullptr if there was no communication with the peer.
    [[nodiscard]] peer *find_peer(world_rank rank) const { return peers_.find(rank); }
    [[nodiscard]] peer &peer_of(world_rank rank) {
        return peers_.find_or_make(rank,
                                   [&] { return std::make_unique<peer>(rank, workers_.size()); });
    }
    [[nodiscard]] std::span<const std::unique_ptr<peer>> all_peers() const { return peers_.all(); }

    /// The worker that receives everything and sends messages and replies.
    worker &first_worker() { return *workers_.front().load(std::memory_order_relaxed); }
    /// The calling thread's worker for sends. Threads share workers if there are more threads.
    worker &own_worker();
    /// Calls action(worker&) for each worker that exists.
    template <typename Action>
    void for_each_worker(Action &&action) {
        for (auto const &slot : workers_) {
            if (worker *const each = slot.load(std::memory_order_acquire); each != nullptr) {
                action(*each);
            }
        }
    }

    /// Progresses the workers that are not locked, idle ones only now and then unless `all`, and
    /// sends replies. No lock may be held. True if there was progress.
    bool advance(bool all = false);
    /// Under the lock of `from`.
    void send_reply(worker &from, const reply &response);
    /// Ends all operations that wait for the peer, see network_peer::fail, and closes its
    /// endpoints. No lock may be held.
    std::string fail(peer &lost, const std::string &why);
    /// Sends a ping, which the peer must answer.
    void ping(peer &silent);

    /// Readable when an armed worker has events.
    [[nodiscard]] int event_fd() const { return epoll_.get(); }
    /// Arms all workers. False: there are events already.
    bool arm();
    /// See network_peers::freeze.
    void freeze();

    [[nodiscard]] context &ctx() { return *context_; }

    static constexpr int max_workers = max_endpoints;

private:
    iface(std::size_t num_ranks, peer_failure_handler on_peer_failure)
        : on_peer_failure_(std::move(on_peer_failure)), peers_(num_ranks) {}
    status add_worker(std::size_t index);

    peer_failure_handler on_peer_failure_;
    std::unique_ptr<context> context_;
    unique_fd epoll_;
    std::mutex workers_mutex_; ///< held while one is created
    std::vector<std::atomic<worker *>> workers_;
    std::unique_ptr<am_receiver> am_receiver_;
    peer_table<peer> peers_;
};

} // namespace diomp::transport::ucx
