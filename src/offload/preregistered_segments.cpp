// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/preregistered_segments.h"

#include <algorithm>

namespace diomp::offload {

/// Leaks the memory, because networks keep it registered until the process ends.
preregistered_segments::~preregistered_segments() {
    for (auto &each : made_) {
        static_cast<void>(each.release());
    }
}

result<transport::device_range>
preregistered_segments::make(const accelerator &on, std::size_t size_bytes, int num_sharing) {
    auto made = segment_memory::create_committed(on, size_bytes, num_sharing);
    DIOMP_TRY(made);
    segment_memory const &memory = *made.value();
    transport::device_range const range{
        {kind_of(on.made_by), reinterpret_cast<std::uintptr_t>(memory.base()), memory.size_bytes()},
        on.id.value()};
    std::lock_guard const guard(mutex_);
    made_.push_back(made.take());
    return range;
}

std::unique_ptr<segment_memory> preregistered_segments::claim(const accelerator &on) {
    std::lock_guard const guard(mutex_);
    auto const found =
        std::ranges::find_if(made_, [&](const auto &each) { return &each->on() == &on; });
    if (found == made_.end()) {
        return nullptr;
    }
    std::unique_ptr<segment_memory> taken = std::move(*found);
    made_.erase(found);
    return taken;
}

} // namespace diomp::offload
