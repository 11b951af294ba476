// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/allocations.h"

#include <iterator>
#include <utility>

namespace diomp::offload::service {

void allocations::add(std::uint64_t address, std::size_t nbytes) {
    // Copies the function, since the last reference may outlive this table.
    std::shared_ptr<void> lifetime(
        reinterpret_cast<void *>(address),
        [free_memory = free_memory_, address](void *) { free_memory(address); });
    std::lock_guard const guard(mutex_);
    blocks_.insert_or_assign(address, block{nbytes, std::move(lifetime)});
}

bool allocations::release(std::uint64_t address) {
    std::shared_ptr<void> last; // released without the lock: freeing device memory may be slow
    std::lock_guard const guard(mutex_);
    auto const found = blocks_.find(address);
    if (found == blocks_.end()) {
        return false;
    }
    last = std::move(found->second.lifetime);
    blocks_.erase(found);
    return true;
}

std::shared_ptr<void> allocations::retain(std::uint64_t address, std::size_t nbytes) const {
    std::lock_guard const guard(mutex_);
    auto const next = blocks_.upper_bound(address);
    if (next == blocks_.begin()) {
        return nullptr;
    }
    auto const &[begin, found] = *std::prev(next);
    std::uint64_t const offset = address - begin;
    if (offset >= found.nbytes || nbytes > found.nbytes - offset) {
        return nullptr;
    }
    return found.lifetime;
}

} // namespace diomp::offload::service
