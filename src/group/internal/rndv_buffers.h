// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory in the own slot for large receives whose buffer lies outside of it.
#pragma once

#include "group/internal/workspace.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace diomp::group {

/// One per rank. Thread-safe. A buffer is its offset in the own slot, plus one; 0: none. Buffers
/// are reused for later messages: freed memory would be zeroed at each allocation.
class rndv_buffers {
public:
    static constexpr std::size_t buffer_bytes = std::size_t{256} << 10;
    static constexpr std::size_t max_buffers = 32;

    rndv_buffers(workspace &space, std::byte *own_slot) : space_(space), own_slot_(own_slot) {}
    /// Frees the buffers that are not taken.
    ~rndv_buffers() {
        for (std::uint64_t const each : free_) {
            space_.release(each - 1);
        }
    }
    rndv_buffers(const rndv_buffers &) = delete;
    rndv_buffers &operator=(const rndv_buffers &) = delete;

    /// 0: max_buffers are in use, or there is no space.
    std::uint64_t take() {
        std::lock_guard const guard(mutex_);
        if (free_.empty()) {
            auto const made = num_buffers_ < max_buffers ? space_.allocate(buffer_bytes)
                                                         : std::optional<std::uint64_t>{};
            num_buffers_ += made ? 1 : 0;
            return made ? *made + 1 : 0;
        }
        std::uint64_t const taken = free_.back();
        free_.pop_back();
        return taken;
    }
    /// Returns a buffer, or none.
    void give_back(std::uint64_t buffer) {
        if (buffer != 0) {
            std::lock_guard const guard(mutex_);
            free_.push_back(buffer);
        }
    }
    [[nodiscard]] std::byte *data(std::uint64_t buffer) const { return own_slot_ + buffer - 1; }

private:
    workspace &space_;
    std::byte *own_slot_;
    std::mutex mutex_; ///< leaf lock
    std::vector<std::uint64_t> free_;
    std::size_t num_buffers_ = 0;
};

} // namespace diomp::group
