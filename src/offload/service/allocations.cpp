// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/allocations.h"

#include <iterator>
#include <utility>

namespace diomp::offload::service {

void allocations::add(std::uint64_t address, std::size_t nbytes) {
    // Its own copy of the function: the last holder may outlive this table.
    std::shared_ptr<void> life(reinterpret_cast<void *>(address),
                               [give_back = give_back_, address](void *) { give_back(address); });
    std::lock_guard const guard(mutex_);
    blocks_.insert_or_assign(address, block{nbytes, std::move(life)});
}

bool allocations::release(std::uint64_t address) {
    std::shared_ptr<void> last; // ends without the lock: a device may take its time
    std::lock_guard const guard(mutex_);
    auto const found = blocks_.find(address);
    if (found == blocks_.end()) {
        return false;
    }
    last = std::move(found->second.life);
    blocks_.erase(found);
    return true;
}

std::shared_ptr<void> allocations::hold(std::uint64_t address, std::size_t nbytes) const {
    std::lock_guard const guard(mutex_);
    auto const behind = blocks_.upper_bound(address);
    if (behind == blocks_.begin()) {
        return nullptr;
    }
    auto const &[begin, found] = *std::prev(behind);
    std::uint64_t const offset = address - begin;
    if (offset >= found.nbytes || nbytes > found.nbytes - offset) {
        return nullptr;
    }
    return found.life;
}

} // namespace diomp::offload::service
