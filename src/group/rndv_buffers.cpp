// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/rndv_buffers.h"

namespace diomp::group {

rndv_buffers::~rndv_buffers() {
    for (std::uint64_t const each : free_) {
        space_.release(each - 1);
    }
}

std::uint64_t rndv_buffers::take() {
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

void rndv_buffers::give_back(std::uint64_t buffer) {
    if (buffer != 0) {
        std::lock_guard const guard(mutex_);
        free_.push_back(buffer);
    }
}

} // namespace diomp::group
