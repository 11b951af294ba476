// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/common/liveness.h"

#include <fmt/core.h>

namespace diomp::transport {

int liveness::check(network_driver &network,
                    const std::function<void(network_peer &, const std::string &)> &declare_lost) {
    auto const now = std::chrono::steady_clock::now();
    int const interval_ms = static_cast<int>(
        std::chrono::duration_cast<std::chrono::milliseconds>(interval_).count() + 1);
    if (now - last_check_ < interval_) {
        return interval_ms; // without checking whether any operation waits
    }
    last_check_ = now;
    bool awaited = false;
    for (network_peer *const each : network.known_peers()) {
        if (each->is_failed() || !each->is_awaited() ||
            each->was_active.exchange(false, std::memory_order_relaxed)) {
            awaited = awaited || (!each->is_failed() && each->is_awaited());
            each->num_silent_checks = 0;
            continue;
        }
        awaited = true;
        ++each->num_silent_checks;
        if (each->num_silent_checks >= checks_per_limit) {
            declare_lost(*each, fmt::format("it has not answered for {:g} s", limit_s_));
        } else if (each->num_silent_checks >= checks_before_ping) {
            network.ping(*each);
        }
    }
    return awaited ? interval_ms : -1;
}

std::string describe_awaited(const std::vector<network_peer *> &peers) {
    constexpr std::size_t max_named = 4;
    std::string named;
    std::size_t num_found = 0;
    for (network_peer *const each : peers) {
        bool const is_silent =
            each->num_silent_checks.load(std::memory_order_relaxed) >= liveness::checks_before_ping;
        std::string const what = each->describe_outstanding(is_silent);
        if (what.empty() || each->is_failed() || ++num_found > max_named) {
            continue;
        }
        named += fmt::format("{}{}{}: {}", named.empty() ? "" : "; ", each->name(),
                             is_silent ? ", which does not respond" : "", what);
    }
    return num_found > max_named
               ? fmt::format("{}; and {} more ranks", named, num_found - max_named)
               : named;
}

} // namespace diomp::transport
