// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/stage_memory.h"

#include "group/internal/workspace.h"

namespace diomp::group {

const stage_memory::large_halves &stage_memory::allocate_large(std::size_t buffer_bytes,
                                                               std::size_t half_bytes) {
    constexpr std::size_t left_free = 8; // times the size of the allocation
    for (std::size_t const nbytes : {std::max(half_bytes, buffer_bytes), buffer_bytes}) {
        if (own_large_.half_bytes > 0) {
            break;
        }
        if (auto const offset = space_.allocate(2 * nbytes, left_free * 2 * nbytes)) {
            own_large_ = {*offset, nbytes};
        }
    }
    return own_large_;
}

void stage_memory::release_large() const {
    if (own_large_.half_bytes > 0) {
        space_.release(own_large_.offset);
    }
}

} // namespace diomp::group
