// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/inflight_guard.h"

#include "rma/device_copies.h"
#include "rma/nonblocking_transfers.h"
#include "rma/rma.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace diomp::offload {

void inflight_guard::prune_finished() {
    std::erase_if(ranges_, [](const inflight_range &each) { return each.until->is_done(); });
    num_.store(ranges_.size(), std::memory_order_release);
}

void inflight_guard::add(const std::byte *begin, std::size_t nbytes, rma::local_completion until) {
    if (until == nullptr || until->is_done()) {
        return;
    }
    auto const address = reinterpret_cast<std::uintptr_t>(begin);
    std::lock_guard const guard(mutex_);
    if (ranges_.size() >= next_prune_at_) {
        prune_finished();
        next_prune_at_ = std::max<std::size_t>(64, 2 * ranges_.size());
    }
    ranges_.push_back({address, address + nbytes, std::move(until)});
    num_.store(ranges_.size(), std::memory_order_release);
}

status inflight_guard::wait_for_copies() {
    // Loaded first: usually there are no copies, and an exchange takes as long as a small map.
    return has_unwaited_copies_.load(std::memory_order_acquire) &&
                   has_unwaited_copies_.exchange(false, std::memory_order_acq_rel)
               ? transfers_.device_copies().wait()
               : status();
}

status inflight_guard::wait_until_unused(const std::byte *begin, std::size_t nbytes) {
    auto const from = reinterpret_cast<std::uintptr_t>(begin);
    std::uintptr_t const to =
        from + std::min<std::uintptr_t>(nbytes, std::numeric_limits<std::uintptr_t>::max() - from);
    std::vector<rma::local_completion> awaited;
    {
        std::lock_guard const guard(mutex_);
        prune_finished();
        for (inflight_range const &each : ranges_) {
            if (each.begin < to && from < each.end) {
                awaited.push_back(each.until);
            }
        }
    }
    return awaited.empty() ? status()
                           : transfers_.nonblocking().wait_for_local_completion(awaited, progress_);
}

} // namespace diomp::offload
