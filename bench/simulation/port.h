// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A simulated rank's attachment to the network: what has arrived, and the sleep until something
// does.
//
// All ranks are actors of one thread of the process, which run one at a time, so nothing here has
// locks.
#pragma once

#include "machine.h"
#include "transport/types.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <simgrid/forward.h>
#include <simgrid/s4u/Semaphore.hpp>
#include <span>
#include <unordered_map>
#include <vector>

namespace diomp::simulation {

/// A message of the library in transit.
struct packet {
    world_rank source;
    transport::handler_id handler = 0;
    std::vector<std::byte> payload{};
    bool is_long = false;
    std::size_t long_bytes = 0;
    std::vector<std::byte> long_payload{}; ///< empty if the job moves no data
    std::uint64_t order = 0;               ///< among the messages of its source that are not long

    [[nodiscard]] std::size_t nbytes() const { return payload.size() + long_bytes; }
};

/// What a rank has sent to other nodes.
struct traffic {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0; ///< with the headers of the library
};

class port {
public:
    explicit port(simgrid::s4u::Host *host);

    [[nodiscard]] simgrid::s4u::Host *host() const { return host_; }
    [[nodiscard]] traffic &sent() { return sent_; }
    /// Puts a packet where next() finds it: those that are not long in the order in which they were
    /// sent.
    void deliver(packet arrived);
    [[nodiscard]] bool has_packets() const { return !packets_.empty(); }
    packet next();
    /// Ends the rank's wait(), now or at its next call. Any actor, and SimGrid's own context.
    void notify();
    /// notify() after `seconds`; once if several ask for it meanwhile.
    void notify_after(double seconds);
    /// Lets simulated time pass until notify().
    void wait();
    std::uint64_t next_order(world_rank to) { return orders_[to.value()]++; }

private:
    struct stream {
        std::uint64_t next = 0;
        std::map<std::uint64_t, packet> early;
    };

    simgrid::s4u::Host *host_;
    simgrid::s4u::SemaphorePtr arrivals_;
    bool is_notified_ = false;
    bool has_timer_ = false;
    std::deque<packet> packets_;
    std::unordered_map<int, stream> streams_;       ///< by source
    std::unordered_map<int, std::uint64_t> orders_; ///< by destination
    traffic sent_;
};

/// Carries `nbytes` from one port's host to the other's, then calls `then`. Returns at once.
void carry(const port &from, const port &to, std::size_t nbytes, std::function<void()> then);
/// The calling rank's core works so long.
void spend(double seconds);

} // namespace diomp::simulation
