// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/internal/fixed_memory.h"

namespace diomp::device {

status fixed_memory::commit(std::size_t offset_bytes, std::size_t nbytes) {
    if (nbytes > size_bytes_ || offset_bytes > size_bytes_ - nbytes) {
        return out_of_range(*this, offset_bytes, nbytes);
    }
    return {};
}

result<shared_handle> fixed_memory::share(std::size_t num_known, std::size_t max_extents) {
    shared_handle shared;
    shared.reserved_bytes = size_bytes_;
    if (num_known > 0 || max_extents == 0) {
        return shared;
    }
    auto token = make_token();
    DIOMP_TRY(token);
    shared.extents.push_back(
        {.offset_bytes = 0, .size_bytes = size_bytes_, .fd = {}, .token = token.value()});
    return shared;
}

status fixed_peer::map_more(const shared_handle &added) {
    if (added.extents.empty()) {
        return {};
    }
    return error(OMPX_ERR_ARG, "memory that is shared as one token does not grow");
}

} // namespace diomp::device
