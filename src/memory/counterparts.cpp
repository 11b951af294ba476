// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/counterparts.h"

#include <mutex>
#include <utility>

namespace diomp::memory {

void counterpart_table::add(std::uint64_t base, std::uint64_t nbytes,
                            std::vector<std::uint64_t> bases, std::optional<std::uint64_t> offset) {
    std::lock_guard const guard(mutex_);
    ranges_[base] = {nbytes, next_number_++, std::move(bases), offset};
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
    range const &known = found->second;
    return counterpart{known.bases[peer.index()] + inside, known.nbytes - inside,
                       known.offset ? std::optional(*known.offset + inside) : std::nullopt};
}

std::optional<counterpart_table::counterpart>
counterpart_table::find_moved(world_rank peer, std::uint64_t address) const {
    if (!has_some_.load(std::memory_order_acquire)) {
        return std::nullopt;
    }
    std::shared_lock const guard(mutex_);
    for (auto const &[base, known] : ranges_) {
        std::uint64_t const inside = address - known.bases[peer.index()];
        if (known.offset && inside <= known.nbytes) {
            return counterpart{address, known.nbytes - inside, *known.offset + inside};
        }
    }
    return std::nullopt;
}

std::optional<counterpart_table::moved_range> counterpart_table::longest_moved() const {
    std::optional<moved_range> longest;
    std::shared_lock const guard(mutex_);
    for (auto const &[base, known] : ranges_) {
        if (known.offset && (!longest || known.nbytes > longest->nbytes)) {
            longest = {base, known.nbytes, *known.offset};
        }
    }
    return longest;
}

} // namespace diomp::memory
