// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Standard input of rank 0 on an agent's host.
#pragma once

#include "core/event_loop.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace diomp::run {

class input_pipe {
public:
    /// `reading_end` receives rank 0's end. `on_ack` is called with the number of bytes written to
    /// the pipe, and with 0 when rank 0 has closed it.
    static result<std::unique_ptr<input_pipe>> create(event_loop &loop, unique_fd &reading_end,
                                                      std::function<void(std::size_t)> on_ack);
    ~input_pipe() { loop_.remove(token_); }
    input_pipe(const input_pipe &) = delete;
    input_pipe &operator=(const input_pipe &) = delete;

    /// Queues text for rank 0; an empty text ends the input. Does not block.
    void add(std::string_view text);

private:
    input_pipe(event_loop &loop, unique_fd pipe, std::function<void(std::size_t)> on_ack)
        : loop_(loop), pipe_(std::move(pipe)), on_ack_(std::move(on_ack)) {}
    void write_some();

    event_loop &loop_;
    unique_fd pipe_;
    std::function<void(std::size_t)> on_ack_;
    event_loop::token token_ = event_loop::token::none;
    std::string waiting_;
    bool ended_ = false;
};

} // namespace diomp::run
