// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds peers that have fallen silent while something waits for them. Networks tell of connections
// that break, if at all; of a host without power or a network without a path nobody tells.
#pragma once

#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace diomp::conduit {

/// What the watch must know of a peer.
class watched_peer {
public:
    virtual ~watched_peer() = default;

    [[nodiscard]] virtual bool is_failed() const = 0;
    /// Something waits for this peer.
    [[nodiscard]] virtual bool is_awaited() = 0;

    /// Something came from it. Any thread.
    void note_sign_of_life() {
        if (!was_heard.load(std::memory_order_relaxed)) {
            was_heard.store(true, std::memory_order_relaxed);
        }
    }

    std::atomic<bool> was_heard{false}; ///< since the watch looked
    std::atomic<int> silent_looks{0};   ///< of the watch in a row; the network thread writes
};

/// The network thread alone uses it. Counts its own looks, not hours: a job that was stopped as a
/// whole (SIGSTOP, a suspended machine) goes on as if nothing had been.
class watch {
public:
    /// A peer from which nothing came for so long, although it was asked, is silent.
    explicit watch(double limit_s)
        : interval_(static_cast<std::int64_t>(limit_s * 1e6 / looks_per_limit) + 1) {}

    /// `ping` is called for peers that should say something, `lose` for those that did not.
    /// Returns when to look again, in milliseconds; -1: not before something is sent.
    int look(const std::function<std::vector<watched_peer *>()> &peers,
             const std::function<void(watched_peer &)> &ping,
             const std::function<void(watched_peer &)> &lose);

    static constexpr int looks_before_ping = 2;

private:
    static constexpr int looks_per_limit = 8;

    std::chrono::microseconds interval_;
    std::chrono::steady_clock::time_point last_look_;
};

/// What is waited for at these peers, as conduit::describe_outstanding. Pointers to watched_peers
/// with describe_outstanding(is_silent) and name().
template <typename Peers>
std::string describe_awaited(const Peers &peers) {
    constexpr std::size_t most_named = 4;
    std::string named;
    std::size_t num_found = 0;
    for (auto const &each : peers) {
        bool const is_silent =
            each->silent_looks.load(std::memory_order_relaxed) >= watch::looks_before_ping;
        std::string const what = each->describe_outstanding(is_silent);
        if (what.empty() || each->is_failed() || ++num_found > most_named) {
            continue;
        }
        named += fmt::format("{}{}{}: {}", named.empty() ? "" : "; ", each->name(),
                             is_silent ? ", which does not answer" : "", what);
    }
    return num_found > most_named
               ? fmt::format("{}; and {} ranks more", named, num_found - most_named)
               : named;
}

} // namespace diomp::conduit
