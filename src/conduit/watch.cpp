// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/watch.h"

namespace diomp::conduit {

int watch::look(const std::function<std::vector<watched_peer *>()> &peers,
                const std::function<void(watched_peer &)> &ping,
                const std::function<void(watched_peer &)> &lose) {
    auto const now = std::chrono::steady_clock::now();
    int const interval_ms = static_cast<int>(
        std::chrono::duration_cast<std::chrono::milliseconds>(interval_).count() + 1);
    if (now - last_look_ < interval_) {
        return interval_ms; // without asking whether there will be something to look at
    }
    last_look_ = now;
    bool awaited = false;
    for (watched_peer *const each : peers()) {
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

} // namespace diomp::conduit
