// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies from one device of a client to another one whose memory is not its slot: the source's
// session sends a request to the target's session, which gets the bytes. So each session validates
// the addresses of its own memory, and keeps it allocated during the copy.
//
// A separate thread serves requests of other sessions, since all threads that run batches may be
// waiting for those sessions. It starts fetches and waits for all of them together, so that a slow
// session does not delay the others. The requesting session waits for the reply before its queue
// continues, which keeps each queue in order.
#pragma once

#include "base/result.h"
#include "messaging/pooled_completion.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "offload/service/target.h"
#include "offload/service/zero_copy.h"
#include "transport/conduit.h"

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace diomp::offload::service {

/// Any thread.
class peer_copies {
public:
    /// Maximum number of concurrent fetches from one session; further requests wait in order of
    /// arrival.
    static constexpr std::size_t max_concurrent = 8;

    peer_copies(const target &device, moved_bytes &moved) : device_(device), moved_(moved) {}
    ~peer_copies();
    peer_copies(const peer_copies &) = delete;
    peer_copies &operator=(const peer_copies &) = delete;

    /// Call once the world is complete and before copy(). Requests that arrive earlier wait.
    void start(remote::world &ranks);
    /// Requests a fetch from the target's session. Blocks until it is complete. The caller keeps
    /// the source memory, of kind `source_memory`, allocated.
    status copy(world_rank to, const remote::zero_copy_transfer &what,
                transport::memory_kind source_memory);

    // Active-message handlers of the world, and the notification of a lost rank.
    void on_request(const transport::message &incoming);
    void on_reply(const transport::message &incoming);
    void on_peer_lost(world_rank peer, const std::string &why);

private:
    struct copy_request {
        world_rank source;
        remote::peer_copy what;
    };
    struct sent_request {
        world_rank target;
        bool is_over = false;
        std::string failure;
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
    [[nodiscard]] bool is_over(std::uint64_t ticket);

    const target &device_;
    moved_bytes &moved_;
    remote::world *ranks_ = nullptr;
    std::mutex mutex_; ///< leaf lock; protects the rest
    std::condition_variable wake_;
    bool stopping_ = false;
    std::vector<copy_request> requests_;
    std::map<int, std::size_t> num_in_flight_; ///< [rank] fetches from it
    std::uint64_t next_ticket_ = 1;
    std::map<std::uint64_t, sent_request> sent_requests_; ///< [ticket]
    std::map<int, std::string> lost_;                     ///< [rank]
    std::thread thread_;
};

} // namespace diomp::offload::service
