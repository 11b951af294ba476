// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A transfer or collective in flight.
#ifndef DIOMP_EVENT_HPP
#define DIOMP_EVENT_HPP

#include "diomp.h"
#include "diomp/error.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

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

namespace detail {

/// The handles of events during a call of diomp.h; the events own them again afterwards.
class borrowed_handles {
public:
    explicit borrowed_handles(std::span<event> events) : events_(events) {
        handles_.reserve(events.size());
        for (event &each : events) {
            handles_.push_back(each.release());
        }
    }
    ~borrowed_handles() {
        for (std::size_t i = 0; i < handles_.size(); ++i) {
            events_[i] = event(handles_[i]);
        }
    }
    borrowed_handles(const borrowed_handles &) = delete;
    borrowed_handles &operator=(const borrowed_handles &) = delete;
    [[nodiscard]] ompx_event_t *data() noexcept { return handles_.data(); }

private:
    std::span<event> events_;
    std::vector<ompx_event_t> handles_;
};

} // namespace detail

/// Blocks until all events are complete. Throws the error of the first operation that failed.
inline void wait_all(std::span<event> events) {
    detail::borrowed_handles handles(events);
    detail::check(ompx_event_wait_all(handles.data(), events.size()));
}
/// Blocks until an event is complete; its number, or nullopt if all are left out. Elements with
/// skip[i] != 0 are left out; empty: none is. Empty events are complete.
inline std::optional<std::size_t> wait_any(std::span<event> events,
                                           std::span<const int> skip = {}) {
    if (!skip.empty() && skip.size() != events.size()) {
        detail::fail(OMPX_ERR_ARG, "wait_any: skip is not as long as the list of events");
    }
    detail::borrowed_handles handles(events);
    std::size_t index = OMPX_NO_INDEX;
    detail::check(ompx_event_wait_any(handles.data(), events.size(),
                                      skip.empty() ? nullptr : skip.data(), &index));
    return index == OMPX_NO_INDEX ? std::nullopt : std::optional(index);
}

} // namespace v1
} // namespace diomp

#endif // DIOMP_EVENT_HPP
