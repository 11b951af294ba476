// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/local_uses.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace diomp::offload {

void local_uses::drop_finished() {
    std::erase_if(uses_, [](const use &each) { return each.until->is_done(); });
    num_.store(uses_.size(), std::memory_order_release);
}

void local_uses::add(const std::byte *begin, std::size_t nbytes, rma::local_use until) {
    if (until == nullptr || until->is_done()) {
        return;
    }
    auto const address = reinterpret_cast<std::uintptr_t>(begin);
    std::lock_guard const guard(mutex_);
    if (uses_.size() >= look_again_at_) {
        drop_finished();
        look_again_at_ = std::max<std::size_t>(64, 2 * uses_.size());
    }
    uses_.push_back({address, address + nbytes, std::move(until)});
    num_.store(uses_.size(), std::memory_order_release);
}

status local_uses::finish(const std::byte *begin, std::size_t nbytes) {
    auto const from = reinterpret_cast<std::uintptr_t>(begin);
    std::uintptr_t const to =
        from + std::min<std::uintptr_t>(nbytes, std::numeric_limits<std::uintptr_t>::max() - from);
    std::vector<rma::local_use> awaited;
    {
        std::lock_guard const guard(mutex_);
        drop_finished();
        for (use const &each : uses_) {
            if (each.begin < to && from < each.end) {
                awaited.push_back(each.until);
            }
        }
    }
    return awaited.empty() ? status() : transfers_.wait_for_local(awaited);
}

} // namespace diomp::offload
