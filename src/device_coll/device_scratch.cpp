// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/internal/device_scratch.h"

#include <algorithm>

namespace diomp::device_coll {

result<device_scratch::lease> device_scratch::take(const offload::accelerator &on) {
    {
        std::lock_guard const guard(mutex_);
        auto const found = std::ranges::find(idle_, &on, &device_buffer::first);
        if (found != idle_.end()) {
            device_buffer given = std::move(*found);
            idle_.erase(found);
            return lease(*this, std::move(given));
        }
    }
    auto made = on.backend->reserve(on.id, buffer_bytes);
    DIOMP_TRY(made);
    DIOMP_TRY(made.value()->commit(0, buffer_bytes));
    return lease(*this, {&on, made.take()});
}

void device_scratch::give_back(device_buffer returned) {
    std::lock_guard const guard(mutex_);
    idle_.push_back(std::move(returned));
}

} // namespace diomp::device_coll
