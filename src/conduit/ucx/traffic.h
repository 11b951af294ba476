// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machinery below the network's calls: workers, peers, what arrives and what follows from it.
#pragma once

#include "base/unique_fd.h"
#include "conduit/network.h"
#include "conduit/ucx/incoming.h"
#include "conduit/watch.h"

namespace diomp::conduit::ucx {

/// Any thread, unless said otherwise.
class traffic {
public:
    /// Collective.
    static result<std::unique_ptr<traffic>> create(launch::launcher &launcher, const window &window,
                                                   const conduit_options &options);
    ~traffic();
    traffic(const traffic &) = delete;
    traffic &operator=(const traffic &) = delete;

    /// nullptr if never spoken to.
    [[nodiscard]] peer *find_peer(world_rank rank) const {
        return peers_[rank.index()].load(std::memory_order_acquire);
    }
    peer &peer_of(world_rank rank);
    [[nodiscard]] std::vector<peer *> spoken_to() const;

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
    /// Ends all that waits for the peer and tells the sink, once. No lock may be held.
    void give_up(peer &lost, const std::string &why);
    void report_failures_to(failure_sink sink);
    /// As in conduit.h.
    [[nodiscard]] std::string describe_outstanding() const;
    /// As network_thread_work::watch. The network thread only.
    int watch_peers();

    /// Readable when an armed worker has something to do.
    [[nodiscard]] int event_fd() const { return epoll_.get(); }
    /// False: there is something to do right now.
    bool arm();

    [[nodiscard]] incoming &arrivals() { return *incoming_; }
    [[nodiscard]] const incoming &arrivals() const { return *incoming_; }
    [[nodiscard]] context &process() { return *context_; }

    static constexpr int max_workers = 16;

private:
    traffic() = default;
    status add_worker(std::size_t index);

    std::unique_ptr<context> context_;
    unique_fd epoll_;
    std::mutex workers_mutex_; ///< creation
    std::vector<std::atomic<worker *>> workers_;
    std::unique_ptr<incoming> incoming_;
    std::unique_ptr<std::atomic<peer *>[]> peers_; ///< [world rank]
    mutable std::mutex peers_mutex_;               ///< creation
    std::vector<std::unique_ptr<peer>> known_peers_;
    std::mutex sink_mutex_;
    failure_sink failure_sink_;
    std::unique_ptr<watch> watch_;
};

} // namespace diomp::conduit::ucx
