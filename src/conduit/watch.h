// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds peers that have fallen silent while something waits for them. Networks tell of connections
// that break, if at all; of a host without power or a network without a path nobody tells.
#pragma once

#include "conduit/network_peer.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace diomp::conduit {

/// The network thread alone uses it. Counts its own looks, not hours: a job that was stopped as a
/// whole (SIGSTOP, a suspended machine) goes on as if nothing had been.
class watch {
public:
    /// A peer from which nothing came for so long, although it was asked, is silent.
    explicit watch(double limit_s)
        : interval_(static_cast<std::int64_t>(limit_s * 1e6 / looks_per_limit) + 1) {}

    /// `ping` is called for peers that should say something, `lose` for those that did not.
    /// Returns when to look again, in milliseconds; -1: not before something is sent.
    int look(const std::function<std::vector<network_peer *>()> &peers,
             const std::function<void(network_peer &)> &ping,
             const std::function<void(network_peer &)> &lose);

    static constexpr int looks_before_ping = 2;

private:
    static constexpr int looks_per_limit = 8;

    std::chrono::microseconds interval_;
    std::chrono::steady_clock::time_point last_look_;
};

/// What is waited for at these peers, as conduit::describe_outstanding.
std::string describe_awaited(const std::vector<network_peer *> &peers);

} // namespace diomp::conduit
