// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds peers that have fallen silent while something waits for them. UCX tells of connections that
// break; of a host without power or a network without a path nobody tells.
#pragma once

#include "conduit/ucx/peer.h"

#include <functional>

namespace diomp::conduit::ucx {

/// The network thread alone uses it. Counts its own looks, not hours: a job that was stopped as a
/// whole (SIGSTOP, a suspended machine) goes on as if nothing had been.
class watch {
public:
    /// A peer from which nothing came for so long, although it was asked, is silent.
    explicit watch(double limit_s)
        : interval_(static_cast<std::int64_t>(limit_s * 1e6 / looks_per_limit) + 1) {}

    /// `ping` is called for peers that should say something, `lose` for those that did not.
    /// Returns when to look again, in milliseconds; -1: not before something is sent.
    int look(const std::function<std::vector<peer *>()> &peers,
             const std::function<void(peer &)> &ping, const std::function<void(peer &)> &lose);

    static constexpr int looks_before_ping = 2;

private:
    static constexpr int looks_per_limit = 8;

    std::chrono::microseconds interval_;
    std::chrono::steady_clock::time_point last_look_;
};

} // namespace diomp::conduit::ucx
