// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where merged output goes: diomp-run's standard output or error. Never blocks in the event loop,
// and never switches the descriptor to non-blocking mode, which would change it for the shell too.
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
    /// So much is waiting that ranks should not be read for now.
    [[nodiscard]] bool congested() const { return queue_.size() - sent_ > high_water_bytes; }
    /// The reader has gone, or the disk is full; text is dropped.
    [[nodiscard]] bool broken() const { return error_ != 0; }
    /// The errno of the write that failed, 0 if none has.
    [[nodiscard]] int error() const { return error_; }
    /// Writes what is waiting, blocking for as long as the reader is there.
    void drain();

private:
    static constexpr std::size_t high_water_bytes = std::size_t{256} * 1024;
    void write_some();

    event_loop &loop_;
    int fd_;
    event_loop::token registered_ = event_loop::token::none;
    std::string queue_;
    std::size_t sent_ = 0; ///< bytes at the front of queue_ that are out
    int error_ = 0;
};

} // namespace diomp::run
