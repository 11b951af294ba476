// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A request to all hosts whose ranks run, complete when each has replied or is gone.
#pragma once

#include "agent_protocol.h"
#include "host_table.h"

#include <functional>
#include <set>

namespace diomp::run {

class host_request {
public:
    host_request(host_table &hosts, frame_type type, std::function<void()> on_done)
        : hosts_(hosts), type_(type), on_done_(std::move(on_done)) {}

    /// Sends the request. `on_done` is called when it is complete; at once if no ranks run.
    void send() {
        for (const host &each : hosts_) {
            if (each.stage == host_stage::running) {
                pending_.insert(&each);
            }
        }
        if (pending_.empty()) {
            on_done_();
        }
        for (host &each : hosts_) {
            if (pending_.contains(&each)) {
                each.link->send(small_frame(type_));
            }
        }
    }
    /// The host has replied or is gone. May be called at any time.
    void on_reply(const host &from) {
        if (pending_.erase(&from) > 0 && pending_.empty()) {
            on_done_();
        }
    }

private:
    host_table &hosts_;
    frame_type type_;
    std::function<void()> on_done_;
    std::set<const host *> pending_;
};

} // namespace diomp::run
