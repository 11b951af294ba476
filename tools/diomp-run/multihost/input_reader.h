// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the head's standard input for a rank 0 on another host, with at most max_unacked_bytes
// unacknowledged.
#pragma once

#include "core/event_loop.h"

#include <functional>
#include <memory>
#include <string_view>

namespace diomp::run {

class input_reader {
public:
    /// `on_text` is called with the text that was read, and with an empty text at the end.
    input_reader(event_loop &loop, std::function<void(std::string_view)> on_text)
        : loop_(loop), on_text_(std::move(on_text)) {}
    ~input_reader() { loop_.remove(token_); }
    input_reader(const input_reader &) = delete;
    input_reader &operator=(const input_reader &) = delete;

    /// Starts to read, except from a terminal in the background. Call at the start and after
    /// SIGCONT.
    void resume();
    /// Rank 0 has received so many bytes; 0: it has closed its input.
    void on_ack(std::size_t bytes);

private:
    [[nodiscard]] bool may_read() const;
    void read_some();

    event_loop &loop_;
    std::function<void(std::string_view)> on_text_;
    event_loop::token token_ = event_loop::token::none;
    std::size_t in_flight_bytes_ = 0;
    bool ended_ = false;
};

} // namespace diomp::run
