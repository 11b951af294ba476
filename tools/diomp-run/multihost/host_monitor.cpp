// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host_monitor.h"

#include "agent_protocol.h"

#include <algorithm>

namespace diomp::run {
namespace {

using clock = std::chrono::steady_clock;

/// Minimum time for an agent to connect: a log-in takes time, however short DIOMP_TIMEOUT is.
constexpr double min_start_limit_s = 10;

} // namespace

result<std::unique_ptr<host_monitor>> host_monitor::create(event_loop &loop, host_table &hosts,
                                                           double timeout_s, handler on_silent) {
    std::unique_ptr<host_monitor> made(new host_monitor(hosts, timeout_s, std::move(on_silent)));
    auto tick = add_timer(loop, [self = made.get()] { self->on_tick(); });
    DIOMP_TRY(tick);
    made->tick_ = tick.take();
    return made;
}

void host_monitor::start() {
    last_tick_ = clock::now();
    tick_->arm(heartbeat_interval(timeout_s_));
}

void host_monitor::on_tick() {
    double const interval_s = heartbeat_interval(timeout_s_);
    auto const time = clock::now();
    // If this process was stopped itself (SIGSTOP, suspend), silence does not mean a lost host.
    bool const awake = time - last_tick_ < std::chrono::duration<double>(2 * interval_s + 1);
    last_tick_ = time;
    for (host &each : hosts_) {
        if (!awake) {
            each.last_received = time;
        } else if (each.stage != host_stage::waiting && each.stage != host_stage::gone) {
            double const limit_s = each.stage == host_stage::starting
                                       ? std::max(timeout_s_, min_start_limit_s)
                                       : timeout_s_;
            if (time - each.last_received > std::chrono::duration<double>(limit_s)) {
                on_silent_(each, limit_s);
            }
        }
    }
    tick_->arm(interval_s);
}

} // namespace diomp::run
