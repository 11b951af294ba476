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
    void send();
    /// The host has replied or is gone. May be called at any time.
    void on_reply(const host &from);

private:
    host_table &hosts_;
    frame_type type_;
    std::function<void()> on_done_;
    std::set<const host *> pending_;
};

} // namespace diomp::run
