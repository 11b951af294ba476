// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Recorded target regions and updates.
#ifndef DIOMP_PLAN_HPP
#define DIOMP_PLAN_HPP

#include "diomp.h"
#include "diomp/error.hpp"
#include "diomp/event.hpp"

#include <utility>

namespace diomp {
inline namespace v1 {

namespace detail {

/// A recording that ends with the scope.
struct plan_recording {
    explicit plan_recording(int device) { check(ompx_plan_begin(device)); }
    plan_recording(const plan_recording &) = delete;
    plan_recording &operator=(const plan_recording &) = delete;
    ~plan_recording() {
        ompx_plan_t unused = OMPX_PLAN_NONE;
        if (is_active && ompx_plan_end(&unused) == OMPX_SUCCESS) {
            ompx_plan_free(&unused);
        }
    }
    bool is_active = true;
};

} // namespace detail

/// Owns an ompx_plan_t.
class plan {
public:
    plan() noexcept = default;
    /// Records the target regions and updates on `device` that `step()` executes; see
    /// ompx_plan_begin(). An exception of `step` ends the recording.
    template <typename Step>
    plan(int device, Step &&step) {
        detail::plan_recording recording(device);
        std::forward<Step>(step)();
        recording.is_active = false;
        detail::check(ompx_plan_end(&handle_));
    }
    plan(plan &&other) noexcept : handle_(std::exchange(other.handle_, OMPX_PLAN_NONE)) {}
    plan &operator=(plan &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    plan(const plan &) = delete;
    plan &operator=(const plan &) = delete;
    ~plan() {
        if (handle_ != OMPX_PLAN_NONE && ompx_is_initialized() == 1) {
            ompx_plan_free(&handle_);
        }
    }

    [[nodiscard]] explicit operator bool() const noexcept { return handle_ != OMPX_PLAN_NONE; }
    /// Executes what was recorded; blocks until the device has finished. Any thread.
    void launch() const { detail::check(ompx_plan_launch(handle_)); }
    /// Without waiting for the device (ompx_plan_launch_nb).
    event launch_nb() const {
        ompx_event_t started = nullptr;
        detail::check(ompx_plan_launch_nb(handle_, &started));
        return event(started);
    }
    [[nodiscard]] ompx_plan_t handle() const noexcept { return handle_; }

private:
    ompx_plan_t handle_ = OMPX_PLAN_NONE;
};

} // namespace v1
} // namespace diomp

#endif // DIOMP_PLAN_HPP
