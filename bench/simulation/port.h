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
    /// Carries `nbytes` to the other port's host, after what is under way there already, then calls
    /// `then`. Returns at once.
    void send(const port &to, std::size_t nbytes, std::function<void()> then);
    /// Puts a packet where next() finds it.
    void deliver(packet arrived) { packets_.push_back(std::move(arrived)); }
    [[nodiscard]] bool has_packets() const { return !packets_.empty(); }
    packet next();
    /// Ends the rank's wait(), now or at its next call. Any actor, and SimGrid's own context.
    void notify();
    /// notify() after `seconds`; once if several ask for it meanwhile.
    void notify_after(double seconds);
    /// Lets simulated time pass until notify().
    void wait();

private:
    struct transfer {
        std::size_t nbytes;
        std::function<void()> then;
    };
    /// The messages to another port, which arrive in the order in which they were sent.
    struct connection {
        double latency_s = 0;
        bool is_busy = false;
        std::deque<transfer> waiting{};
    };
    connection &connection_to(const port &to);
    /// Called when the message's latency is over.
    void pass(connection &through, simgrid::s4u::Host *target, transfer what);

    simgrid::s4u::Host *host_;
    simgrid::s4u::SemaphorePtr arrivals_;
    bool is_notified_ = false;
    bool has_timer_ = false;
    std::deque<packet> packets_;
    std::unordered_map<const port *, connection> connections_;
    traffic sent_;
};

/// The calling rank's core works so long.
void spend(double seconds);

} // namespace diomp::simulation
