// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/segment_table.h"

#include "memory/memory.h"
#include "offload/device_segment.h"

namespace diomp::offload {

void segment_table::add(device_segment &made) {
    if (made.memory() != nullptr || made.remote_index()) {
        has_others_.store(true, std::memory_order_release);
    }
    segments_[static_cast<std::size_t>(made.device())].store(&made, std::memory_order_release);
}

device_segment *segment_table::containing(const void *address) const {
    if (!space_.in_arena(address) && !has_others_.load(std::memory_order_acquire)) {
        return nullptr;
    }
    for (auto const &each : segments_) {
        device_segment *const segment = each.load(std::memory_order_acquire);
        if (segment != nullptr && segment->offset_of(address)) {
            return segment;
        }
    }
    return nullptr;
}

std::optional<device_allocation> segment_table::find_allocation_at(int device,
                                                                   const void *address) const {
    device_segment const *const segment = find(device);
    auto const offset = segment == nullptr ? std::nullopt : segment->offset_of(address);
    auto const found = offset ? segment->find(*offset) : std::nullopt;
    return found && found->offset == *offset ? found : std::nullopt;
}

} // namespace diomp::offload
