// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An agent's connection to the head: frames, heartbeats, and the end of the connection.
#pragma once

#include "agent_protocol.h"
#include "frame_link.h"
#include "head_connection.h"

#include <memory>
#include <string>
#include <string_view>

namespace diomp::run {

class head_link {
public:
    static result<std::unique_ptr<head_link>> create(event_loop &loop, frame_events &events,
                                                     head_connection connection, double timeout_s);

    void send(std::string_view frame) { link_->send(frame); }
    /// Reports a failure, whereupon the head ends the job on all hosts.
    void send_failure(int exit_status, const std::string &message);
    /// Sends a line for the user.
    void send_message(const std::string &line);
    /// Sends the last frame. The head closes the connection then, or a time limit does.
    void finish(bool clean);
    [[nodiscard]] bool is_open() const { return link_->is_open(); }

private:
    head_link() = default;

    std::unique_ptr<frame_link> link_;
    std::unique_ptr<timer> alive_;
    std::unique_ptr<timer> shutdown_;
};

} // namespace diomp::run
