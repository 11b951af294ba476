// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Destination of merged output: diomp-run's standard output or error. Does not block in the event
// loop, and does not set the descriptor to non-blocking mode, which would affect the shell too.
#pragma once

#include "event_loop.h"

#include <string>
#include <string_view>

namespace diomp::run {

class sink {
public:
    sink(event_loop &loop, int fd) : loop_(loop), fd_(fd) {}
    sink(const sink &) = delete;
    sink &operator=(const sink &) = delete;
    ~sink() { loop_.remove(registered_); }

    void write(std::string_view text);
    /// Called when congested() or broken() may have changed.
    std::function<void()> on_change;
    /// Returns whether so much text is queued that the ranks' output should not be read for now.
    [[nodiscard]] bool congested() const { return queue_.size() - sent_ > high_water_bytes; }
    /// Returns whether a write has failed (closed reader, full disk); text is dropped then.
    [[nodiscard]] bool broken() const { return error_ != 0; }
    /// Returns the errno of the failed write, 0 if none has failed.
    [[nodiscard]] int error() const { return error_; }
    /// Writes all queued text. Blocks until it is written or a write fails.
    void drain();

private:
    static constexpr std::size_t high_water_bytes = std::size_t{256} * 1024;
    void write_some();

    event_loop &loop_;
    int fd_;
    event_loop::token registered_ = event_loop::token::none;
    std::string queue_;
    std::size_t sent_ = 0; ///< bytes at the front of queue_ that are written
    int error_ = 0;
};

} // namespace diomp::run
