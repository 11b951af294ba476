// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An event loop: one epoll set with a handler per descriptor. For one thread.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

namespace diomp::run {

class event_loop {
public:
    using handler = std::function<void(std::uint32_t events)>;
    /// Identifies a registration. A descriptor's number would not do: it may be reused while an
    /// event of the closed descriptor is still in the batch.
    enum class token : std::uint64_t { none = 0 };

    static result<event_loop> create();

    /// Registers a handler, level-triggered. `on_event` may remove any registration, its own
    /// included. The descriptor must stay open until it is removed.
    result<token> add(int fd, std::uint32_t events, handler on_event);
    void modify(token which, std::uint32_t events);
    /// Removes the registration and sets `which` to none. Does nothing for token::none.
    void remove(token &which);
    /// Waits for events and handles one batch.
    status run_once();

private:
    struct registration {
        int fd;
        handler on_event;
    };
    explicit event_loop(unique_fd epoll) : epoll_(std::move(epoll)) {}

    unique_fd epoll_;
    std::uint64_t last_ = 0;
    std::unordered_map<std::uint64_t, std::shared_ptr<registration>> registered_;
};

/// A one-shot timer.
class timer {
public:
    static result<timer> create();
    void arm(double seconds);
    void disarm();
    /// Must be called when the descriptor is readable.
    void acknowledge();
    [[nodiscard]] bool armed() const { return armed_; }
    [[nodiscard]] int fd() const { return fd_.get(); }

private:
    explicit timer(unique_fd fd) : fd_(std::move(fd)) {}

    unique_fd fd_;
    bool armed_ = false;
};

/// Makes a timer that calls a function on expiry. The function's captures must outlive the loop.
result<std::unique_ptr<timer>> add_timer(event_loop &loop, const std::function<void()> &on_expiry);

} // namespace diomp::run
