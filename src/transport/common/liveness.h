// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Detects peers that do not respond while operations wait for them. Networks report broken
// connections, if at all; a host without power or a network without a path is not reported.
#pragma once

#include "transport/common/network_driver.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace diomp::transport {

/// Network thread only. Counts its own checks instead of elapsed time: a job that was stopped as a
/// whole (SIGSTOP, a suspended machine) goes on undisturbed.
class liveness {
public:
    /// A peer that has sent nothing for this time, although it was pinged, is lost.
    explicit liveness(double limit_s)
        : limit_s_(limit_s),
          interval_(static_cast<std::int64_t>(limit_s * 1e6 / checks_per_limit) + 1) {}

    /// Pings peers of the network that are silent, and calls `declare_lost` with the reason for
    /// peers that stay silent. Returns milliseconds until the next check; -1: not before something
    /// is sent.
    int check(network_driver &network,
              const std::function<void(network_peer &, const std::string &)> &declare_lost);

    static constexpr int checks_before_ping = 2;

private:
    static constexpr int checks_per_limit = 8;

    double limit_s_;
    std::chrono::microseconds interval_;
    std::chrono::steady_clock::time_point last_check_;
};

/// The operations outstanding at these peers, in the form of network_peers::describe_outstanding.
std::string describe_awaited(const std::vector<network_peer *> &peers);

} // namespace diomp::transport
