// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/counterparts.h"

#include <iterator>
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

counterpart_table::range_map::const_iterator
counterpart_table::find_range(std::uint64_t address) const {
    auto const after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) {
        return ranges_.end();
    }
    auto const found = std::prev(after);
    return address - found->first <= found->second.nbytes ? found : ranges_.end();
}

std::optional<counterpart_table::shared_position>
counterpart_table::position_of(std::uint64_t address) const {
    std::shared_lock const guard(mutex_);
    auto const found = find_range(address);
    if (found == ranges_.end() || address - found->first == found->second.nbytes) {
        return std::nullopt;
    }
    std::uint64_t const inside = address - found->first;
    return shared_position{found->second.number, inside, found->second.nbytes - inside};
}

std::optional<counterpart_table::counterpart>
counterpart_table::find_in_ranges(world_rank peer, std::uint64_t address) const {
    std::shared_lock const guard(mutex_);
    auto const found = find_range(address);
    if (found == ranges_.end()) {
        return std::nullopt;
    }
    std::uint64_t const inside = address - found->first;
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
