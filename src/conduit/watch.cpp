// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/watch.h"

#include <fmt/core.h>

namespace diomp::conduit {

int watch::look(const std::function<std::vector<network_peer *>()> &peers,
                const std::function<void(network_peer &)> &ping,
                const std::function<void(network_peer &)> &lose) {
    auto const now = std::chrono::steady_clock::now();
    int const interval_ms = static_cast<int>(
        std::chrono::duration_cast<std::chrono::milliseconds>(interval_).count() + 1);
    if (now - last_look_ < interval_) {
        return interval_ms; // without asking whether there will be something to look at
    }
    last_look_ = now;
    bool awaited = false;
    for (network_peer *const each : peers()) {
        if (each->is_failed() || !each->is_awaited() ||
            each->was_heard.exchange(false, std::memory_order_relaxed)) {
            awaited = awaited || (!each->is_failed() && each->is_awaited());
            each->silent_looks = 0;
            continue;
        }
        awaited = true;
        ++each->silent_looks;
        if (each->silent_looks >= looks_per_limit) {
            lose(*each);
        } else if (each->silent_looks >= looks_before_ping) {
            ping(*each);
        }
    }
    return awaited ? interval_ms : -1;
}

std::string describe_awaited(const std::vector<network_peer *> &peers) {
    constexpr std::size_t most_named = 4;
    std::string named;
    std::size_t num_found = 0;
    for (network_peer *const each : peers) {
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
