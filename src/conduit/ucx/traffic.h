// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machinery below the network's calls: workers, peers, what arrives and what follows from it.
#pragma once

#include "base/unique_fd.h"
#include "conduit/ucx/incoming.h"

#include <functional>

namespace diomp::conduit::ucx {

/// Any thread, unless said otherwise.
class traffic {
public:
    using loss_sink = std::function<void(peer &lost, const std::string &why)>;

    /// Collective. `lose` is told of connections that break, by any thread.
    static result<std::unique_ptr<traffic>> create(launch::launcher &launcher, const window &window,
                                                   const conduit_options &options,
                                                   arrivals &arrived, loss_sink lose);
    ~traffic();
    traffic(const traffic &) = delete;
    traffic &operator=(const traffic &) = delete;

    /// nullptr if never spoken to.
    [[nodiscard]] peer *find_peer(world_rank rank) const { return peers_.find(rank); }
    [[nodiscard]] peer &peer_of(world_rank rank) {
        return peers_.find_or_make(rank,
                                   [&] { return std::make_unique<peer>(rank, workers_.size()); });
    }
    [[nodiscard]] std::span<const std::unique_ptr<peer>> spoken_to() const { return peers_.all(); }

    /// Receives everything; sends messages and answers.
    worker &first_worker() { return *workers_.front().load(std::memory_order_relaxed); }
    /// The calling thread's, for what it injects. Threads share when there are more of them.
    worker &own_worker();
    /// Calls action(worker&) for each that exists.
    template <typename Action>
    void for_each_worker(Action &&action) {
        for (auto const &slot : workers_) {
            if (worker *const each = slot.load(std::memory_order_acquire); each != nullptr) {
                action(*each);
            }
        }
    }

    /// Progress of the workers that are free, and what follows from it; of idle ones only now and
    /// then unless `all`. No lock may be held. True if something moved.
    bool advance(bool all = false);
    /// Sends open packets that are due. Under the worker's lock.
    static void ship_open(worker &from);
    /// Under the lock of `from`.
    void send_reply(worker &from, const reply &answer);
    /// Under the worker's lock.
    static void mark_broken(worker &owner, peer &lost);
    /// Ends what waits for the peer and its connections, as network_peer::fail. No lock may be
    /// held.
    std::string fail(peer &lost, const std::string &why);
    /// Asks for a sign of life.
    void ping(peer &silent);

    /// Readable when an armed worker has something to do.
    [[nodiscard]] int event_fd() const { return epoll_.get(); }
    /// False: there is something to do right now.
    bool arm();
    /// As conduit::freeze.
    void freeze();

    [[nodiscard]] context &process() { return *context_; }

    static constexpr int max_workers = 16;

private:
    traffic(std::size_t num_ranks, loss_sink lose) : lose_(std::move(lose)), peers_(num_ranks) {}
    status add_worker(std::size_t index);

    loss_sink lose_;
    std::unique_ptr<context> context_;
    unique_fd epoll_;
    std::mutex workers_mutex_; ///< creation
    std::vector<std::atomic<worker *>> workers_;
    std::unique_ptr<incoming> incoming_;
    peer_table<peer> peers_;
};

} // namespace diomp::conduit::ucx
