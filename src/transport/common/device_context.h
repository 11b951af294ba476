// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The function that device_transfers::bind_device_context has registered with a network.
#pragma once

#include "transport/types.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace diomp::transport {

/// Thread-safe.
class device_context {
public:
    /// See device_transfers::bind_device_context.
    void bind_device_context(const device_context_binder &binder) {
        std::lock_guard const guard(mutex_);
        if (!binder || !binder_) {
            binder_ = binder;
            is_bound_.store(static_cast<bool>(binder), std::memory_order_release);
        }
    }
    /// Call around library calls that may access device memory; null if no function is registered.
    [[nodiscard]] std::shared_ptr<void> bind_to_thread() {
        if (!is_bound_.load(std::memory_order_acquire)) [[likely]] {
            return nullptr;
        }
        std::shared_lock const guard(mutex_);
        return binder_ ? binder_() : nullptr;
    }

private:
    std::atomic<bool> is_bound_{false};
    /// held while a context is bound, since the owner may remove the function
    std::shared_mutex mutex_;
    device_context_binder binder_;
};

} // namespace diomp::transport
