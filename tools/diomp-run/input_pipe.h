// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Standard input of rank 0 on another host than the head's.
#pragma once

#include "event_loop.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace diomp::run {

class input_pipe {
public:
    /// `reading_end` is rank 0's. `on_taken` gets the bytes that the pipe has taken, and 0 when
    /// nobody reads it any more.
    static result<std::unique_ptr<input_pipe>> create(event_loop &loop, unique_fd &reading_end,
                                                      std::function<void(std::size_t)> on_taken);
    ~input_pipe() { loop_.remove(token_); }
    input_pipe(const input_pipe &) = delete;
    input_pipe &operator=(const input_pipe &) = delete;

    /// No text: the end of the input.
    void add(std::string_view text);

private:
    input_pipe(event_loop &loop, unique_fd pipe, std::function<void(std::size_t)> on_taken)
        : loop_(loop), pipe_(std::move(pipe)), on_taken_(std::move(on_taken)) {}
    void write_some();

    event_loop &loop_;
    unique_fd pipe_;
    std::function<void(std::size_t)> on_taken_;
    event_loop::token token_ = event_loop::token::none;
    std::string waiting_;
    bool ended_ = false;
};

} // namespace diomp::run
