// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scratch buffers in the memory of this rank's devices, for the duration of a call.
#pragma once

#include "offload/accelerators.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace diomp::device_coll {

/// A pool of scratch buffers; returned buffers are kept for reuse. Any thread.
class device_scratch {
    using device_buffer = std::pair<const offload::accelerator *, std::unique_ptr<device::memory>>;

public:
    static constexpr std::size_t buffer_bytes = std::size_t{4} << 20;

    /// Owns a buffer and returns it to the pool. Must be destroyed before the pool, and only when
    /// no device uses the buffer.
    class lease {
    public:
        lease() = default;
        lease(device_scratch &of, device_buffer given) : of_(&of), given_(std::move(given)) {}
        lease(lease &&other) noexcept = default;
        lease &operator=(lease &&) = delete;
        ~lease() {
            if (given_.second != nullptr) {
                of_->give_back(std::move(given_));
            }
        }
        /// Empty for a default-constructed lease.
        [[nodiscard]] std::span<std::byte> bytes() const {
            return given_.second == nullptr ? std::span<std::byte>{}
                                            : std::span(given_.second->base(), buffer_bytes);
        }

    private:
        device_scratch *of_ = nullptr;
        device_buffer given_;
    };
    /// Errors: OMPX_ERR_NOMEM if the device is full.
    result<lease> take(const offload::accelerator &on);

private:
    void give_back(device_buffer returned);

    std::mutex mutex_; ///< leaf lock
    std::vector<device_buffer> idle_;
};

} // namespace diomp::device_coll
