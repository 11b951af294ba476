// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forwards standard input to rank 0. A file or pipe is passed on as descriptor. A terminal is read
// by diomp-run and forwarded through a pipe, since rank 0 is in a process group of its own, which
// is a background group of the terminal.
#pragma once

#include "event_loop.h"

#include <memory>
#include <string>

namespace diomp::run {

class input_forwarder {
public:
    /// Returns the descriptor that rank 0 reads from; close it after the start. `forwarder` is set
    /// only for a terminal.
    static result<unique_fd> open(event_loop &loop, std::unique_ptr<input_forwarder> &forwarder);
    ~input_forwarder();
    input_forwarder(const input_forwarder &) = delete;
    input_forwarder &operator=(const input_forwarder &) = delete;

    /// Reads from the terminal if diomp-run is in the foreground. Call at the start and after
    /// SIGCONT.
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
