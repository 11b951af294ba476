// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each network implements for the parts that all networks share.
#pragma once

#include "transport/common/network_peer.h"
#include "transport/types.h"

namespace diomp::transport {

class network_driver {
public:
    virtual ~network_driver() = default;

    /// Prepares for sleeping on the descriptor. False: there is work. One thread at a time.
    virtual bool arm() { return true; }

    // Called by the network thread:
    /// Makes progress. True if there was work.
    virtual bool serve() = 0;
    /// Maximum milliseconds that the thread may sleep, given the limit of the liveness check; -1:
    /// until an event.
    virtual int max_sleep_ms(int limit_ms) { return limit_ms; }
    virtual void ping(network_peer &silent) = 0;

    // Called by any thread:
    [[nodiscard]] virtual std::vector<network_peer *> known_peers() const = 0;
    /// Fails all operations that wait for the peer; see network_peer::fail.
    virtual std::string fail(network_peer &lost, const std::string &why) { return lost.fail(why); }
    /// Sends credit to the sender from time to time. Not needed by networks whose messages do not
    /// pass through the arrivals of network_base.
    virtual void note_handled(const message & /*each*/) {}
    /// Returns when everything sent has arrived, except to lost peers.
    virtual status drain() = 0;
};

} // namespace diomp::transport
