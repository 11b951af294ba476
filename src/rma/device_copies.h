// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device copies in flight, for which fences also wait. Devices and network are polled in one loop
// (DiOMP-Offloading 2025, hybrid polling).
#pragma once

#include "base/result.h"

#include <atomic>
#include <functional>
#include <utility>

namespace diomp::messaging {
class engine;
}

namespace diomp::rma {

/// Any thread, except set_idle_query().
class device_copies {
public:
    /// Whether no device copy is in flight. Must not block. An error is the failure of such a copy.
    using idle_query = std::function<result<bool>()>;

    explicit device_copies(messaging::engine &engine) : engine_(engine) {}

    /// Call before engine.start().
    void set_idle_query(idle_query query) { is_idle_ = std::move(query); }
    /// Announces that there may be device copies from now on.
    void enable() { enabled_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
    /// Waits until no device copy is in flight.
    status wait() { return enabled() ? wait_until_idle() : status{}; }

private:
    status wait_until_idle();

    messaging::engine &engine_;
    idle_query is_idle_;
    std::atomic<bool> enabled_{false};
};

} // namespace diomp::rma
