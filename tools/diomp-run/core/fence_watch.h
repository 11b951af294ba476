// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Watches the fences in which the ranks of a job wait for one another while it starts, and reports
// when they wait for a long time: a rank may be stuck before it joins the job, or stopped.
#pragma once

#include "event_loop.h"
#include "launch/fence_limits.h"

#include <functional>
#include <memory>

namespace diomp::run {

class fence_watch {
public:
    struct handlers {
        /// The ranks have waited for DIOMP_WARN_AFTER. Once per wait.
        std::function<void(double waited_s)> on_warning;
        /// The ranks have waited for DIOMP_TIMEOUT.
        std::function<void(double waited_s)> on_timeout;
    };
    static result<std::unique_ptr<fence_watch>>
    create(event_loop &loop, const launch::fence_limits &limits, handlers on);

    /// A rank waits for others from now on; no effect during a wait.
    void begin();
    /// No rank waits any more.
    void end();
    /// The time counts from now: the job was suspended.
    void restart();

private:
    enum class stage { idle, before_warning, before_timeout, reported };
    fence_watch(const launch::fence_limits &limits, handlers on)
        : limits_(limits), on_(std::move(on)) {}
    void on_timer();
    [[nodiscard]] bool warns_first() const {
        return limits_.warn_after_s > 0 &&
               (limits_.timeout_s <= 0 || limits_.warn_after_s < limits_.timeout_s);
    }

    launch::fence_limits limits_;
    handlers on_;
    stage stage_ = stage::idle;
    std::unique_ptr<timer> timer_;
};

} // namespace diomp::run
