// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/counterparts.h"

#include <mutex>
#include <utility>

namespace diomp::memory {

void counterpart_table::add(std::uint64_t base, std::uint64_t nbytes,
                            std::vector<std::uint64_t> bases) {
    std::lock_guard const guard(mutex_);
    ranges_[base] = {nbytes, next_number_++, std::move(bases)};
    has_some_.store(true, std::memory_order_release);
}

void counterpart_table::remove(std::uint64_t base) {
    std::lock_guard const guard(mutex_);
    ranges_.erase(base);
    has_some_.store(!ranges_.empty(), std::memory_order_release);
}

std::optional<std::uint64_t> counterpart_table::number_of(std::uint64_t base) const {
    std::shared_lock const guard(mutex_);
    auto const found = ranges_.find(base);
    return found == ranges_.end() ? std::nullopt : std::optional(found->second.number);
}

std::optional<counterpart_table::counterpart>
counterpart_table::find_in_ranges(world_rank peer, std::uint64_t address) const {
    std::shared_lock const guard(mutex_);
    auto found = ranges_.upper_bound(address);
    if (found == ranges_.begin()) {
        return std::nullopt;
    }
    --found;
    std::uint64_t const inside = address - found->first;
    if (inside > found->second.nbytes) {
        return std::nullopt;
    }
    return counterpart{found->second.bases[peer.index()] + inside, found->second.nbytes - inside};
}

} // namespace diomp::memory
