// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Standard input goes to rank 0. A file or pipe is handed over as it is. A terminal cannot be: rank
// 0 is in a process group of its own, in the background for the terminal, so what is typed goes
// through a pipe.
#pragma once

#include "event_loop.h"

#include <memory>
#include <string>

namespace diomp::run {

class input_forwarder {
public:
    /// What rank 0 reads from: close it after the start. `forwarder` is set only for a terminal.
    static result<unique_fd> open(event_loop &loop, std::unique_ptr<input_forwarder> &forwarder);
    ~input_forwarder();
    input_forwarder(const input_forwarder &) = delete;
    input_forwarder &operator=(const input_forwarder &) = delete;

    /// After being continued, and at the start: reads if diomp-run is in the foreground.
    void resume();

private:
    input_forwarder(event_loop &loop, unique_fd pipe) : loop_(loop), pipe_(std::move(pipe)) {}
    void read_terminal();
    void write_pipe();
    void close_pipe();

    event_loop &loop_;
    unique_fd pipe_;
    std::string waiting_;
    event_loop::token terminal_token_ = event_loop::token::none;
    event_loop::token pipe_token_ = event_loop::token::none;
};

} // namespace diomp::run
