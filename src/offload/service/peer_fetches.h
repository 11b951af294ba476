// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies into this session's device that sessions of other devices have requested (peer_copies.h).
//
// A separate thread serves them, since all threads that run batches may be waiting for other
// sessions. It starts fetches and waits for all of them together, so that a slow session does not
// delay the others.
#pragma once

#include "messaging/pooled_completion.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "offload/service/target.h"
#include "offload/service/zero_copy.h"

#include <condition_variable>
#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace diomp::offload::service {

/// Any thread.
class peer_fetches {
public:
    /// Maximum number of concurrent fetches from one session; further requests wait in order of
    /// arrival.
    static constexpr std::size_t max_concurrent = 8;

    /// `num_clients`: ranks of the world that are no sessions.
    peer_fetches(const target &device, moved_bytes &moved, int num_clients)
        : device_(device), moved_(moved), num_clients_(num_clients) {}
    ~peer_fetches();
    peer_fetches(const peer_fetches &) = delete;
    peer_fetches &operator=(const peer_fetches &) = delete;

    /// Call once the world is complete. Requests that arrive earlier wait.
    void start(remote::world &ranks);
    /// Active-message handler of the world: adds a request.
    void on_request(const transport::message &incoming);
    /// Drops the requests of a lost rank.
    void on_peer_lost(world_rank peer);

private:
    struct copy_request {
        world_rank source;
        remote::peer_copy what;
    };
    struct fetch {
        copy_request request;
        network_range memory;
        messaging::pooled_completion completion;
    };
    void serve(); ///< body of the thread
    void wake();  ///< wakes the thread, wherever it waits
    /// Waits until a fetch can start or has finished. False: the thread must end.
    bool wait_for_change(const std::list<fetch> &in_flight);
    /// Removes and returns the requests that may start now.
    std::vector<copy_request> pop_startable();
    status begin(fetch &wanted);
    void send_reply(const copy_request &request, const status &done);
    /// Called with mutex_ held.
    [[nodiscard]] bool may_start(const copy_request &request) const;

    const target &device_;
    moved_bytes &moved_;
    int const num_clients_;
    std::mutex mutex_; ///< leaf lock; protects the rest
    remote::world *ranks_ = nullptr;
    std::condition_variable wake_;
    bool stopping_ = false;
    std::vector<copy_request> requests_;
    std::map<int, std::size_t> num_in_flight_; ///< [rank] fetches from it
    std::thread thread_;
};

} // namespace diomp::offload::service
