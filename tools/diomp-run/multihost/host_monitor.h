// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Detects agents that are silent, or that have not connected in time.
#pragma once

#include "host_table.h"

#include <chrono>
#include <functional>
#include <memory>

namespace diomp::run {

class host_monitor {
public:
    /// `on_silent` is called for a host that is silent for longer than `limit_s`.
    using handler = std::function<void(host &which, double limit_s)>;
    /// `timeout_s`: silence after which an agent counts as lost.
    static result<std::unique_ptr<host_monitor>> create(event_loop &loop, host_table &hosts,
                                                        double timeout_s, handler on_silent);
    void start();
    [[nodiscard]] double timeout_s() const { return timeout_s_; }

private:
    host_monitor(host_table &hosts, double timeout_s, handler on_silent)
        : hosts_(hosts), timeout_s_(timeout_s), on_silent_(std::move(on_silent)) {}
    void on_tick();

    host_table &hosts_;
    double timeout_s_;
    handler on_silent_;
    std::unique_ptr<timer> tick_;
    std::chrono::steady_clock::time_point last_tick_;
};

} // namespace diomp::run
