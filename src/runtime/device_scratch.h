// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pieces of own devices' memory for the length of a call.
#pragma once

#include "offload/offload.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace diomp::runtime {

/// Any thread. Keeps what has been given back.
class device_scratch {
    using piece = std::pair<const offload::accelerator *, std::unique_ptr<device::memory>>;

public:
    static constexpr std::size_t piece_bytes = std::size_t{4} << 20;

    /// Gives the piece back. Ends before the scratch memory does, and when no device uses it.
    class lease {
    public:
        lease() = default;
        lease(device_scratch &of, piece given) : of_(&of), given_(std::move(given)) {}
        lease(lease &&other) noexcept = default;
        lease &operator=(lease &&) = delete;
        ~lease() {
            if (given_.second != nullptr) {
                of_->give_back(std::move(given_));
            }
        }
        /// Empty: nothing has been taken.
        [[nodiscard]] std::span<std::byte> bytes() const {
            return given_.second == nullptr ? std::span<std::byte>{}
                                            : std::span(given_.second->base(), piece_bytes);
        }

    private:
        device_scratch *of_ = nullptr;
        piece given_;
    };
    /// OMPX_ERR_NOMEM: the device is full.
    result<lease> take(const offload::accelerator &on);

private:
    void give_back(piece returned);

    std::mutex mutex_; ///< leaf lock
    std::vector<piece> idle_;
};

} // namespace diomp::runtime
