// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A transfer or collective in flight.
#ifndef DIOMP_EVENT_HPP
#define DIOMP_EVENT_HPP

#include "diomp.h"
#include "diomp/error.hpp"

#include <utility>

namespace diomp {
inline namespace v1 {

/// Owns an ompx_event_t. An empty event is complete. The operation's buffers must not be used
/// before completion, so the destructor waits. One thread at a time.
class [[nodiscard]] event {
public:
    event() noexcept = default;
    explicit event(ompx_event_t handle) noexcept : handle_(handle) {}
    event(event &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    /// Waits for the operation that this event owned before.
    event &operator=(event &&other) noexcept {
        if (this != &other) {
            finish();
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    event(const event &) = delete;
    event &operator=(const event &) = delete;
    ~event() { finish(); }

    /// Makes progress; true once complete. Does not block.
    [[nodiscard]] bool test() {
        if (handle_ == nullptr) {
            return true;
        }
        int done = 0;
        detail::check(ompx_event_test(&handle_, &done));
        return done != 0;
    }
    /// Blocks until complete. Throws the operation's error.
    void wait() {
        if (handle_ != nullptr) {
            detail::check(ompx_event_wait(&handle_));
        }
    }
    /// Gives up ownership, for functions of diomp.h.
    [[nodiscard]] ompx_event_t release() noexcept { return std::exchange(handle_, nullptr); }

private:
    void finish() noexcept {
        if (handle_ != nullptr && ompx_is_initialized() == 1) {
            ompx_event_wait(&handle_);
        }
    }

    ompx_event_t handle_ = nullptr;
};

} // namespace v1
} // namespace diomp

#endif // DIOMP_EVENT_HPP
