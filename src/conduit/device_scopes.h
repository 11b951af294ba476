// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What conduit::work_in has given to a network.
#pragma once

#include "conduit/conduit.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace diomp::conduit {

/// Any thread.
class device_scopes {
public:
    /// As conduit::work_in.
    void work_in(const device_scope &scope) {
        std::lock_guard const guard(mutex_);
        if (!scope || !scope_) {
            scope_ = scope;
            is_given_.store(static_cast<bool>(scope), std::memory_order_release);
        }
    }
    /// For calls of a library that may touch memory of devices; null if there is none.
    [[nodiscard]] std::shared_ptr<void> enter() {
        if (!is_given_.load(std::memory_order_acquire)) [[likely]] {
            return nullptr;
        }
        std::shared_lock const guard(mutex_);
        return scope_ ? scope_() : nullptr;
    }

private:
    std::atomic<bool> is_given_{false};
    std::shared_mutex mutex_; ///< held while a scope is made, which the giver may withdraw
    device_scope scope_;
};

} // namespace diomp::conduit
