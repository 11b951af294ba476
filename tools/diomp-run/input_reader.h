// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The head's standard input, for a rank 0 on another host. Reads no further ahead than the window.
#pragma once

#include "event_loop.h"

#include <functional>
#include <memory>
#include <string_view>

namespace diomp::run {

class input_reader {
public:
    /// `on_text` gets what is read; an empty text at the end.
    input_reader(event_loop &loop, std::function<void(std::string_view)> on_text)
        : loop_(loop), on_text_(std::move(on_text)) {}
    ~input_reader() { loop_.remove(token_); }
    input_reader(const input_reader &) = delete;
    input_reader &operator=(const input_reader &) = delete;

    /// At the start, and after being continued: reads, but not a terminal from the background.
    void resume();
    /// Rank 0 has used so many bytes; 0: it reads no more.
    void taken(std::size_t bytes);

private:
    [[nodiscard]] bool may_read() const;
    void read_some();

    event_loop &loop_;
    std::function<void(std::string_view)> on_text_;
    event_loop::token token_ = event_loop::token::none;
    std::size_t on_the_way_ = 0;
    bool ended_ = false;
};

} // namespace diomp::run
