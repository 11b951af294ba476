// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/match_queue_table.h"

#include <algorithm>

namespace diomp::group {

match_queue &match_queue_table::open(std::uint64_t group_id) {
    std::lock_guard const guard(mutex_);
    auto &found = queues_[group_id];
    if (!found) {
        found = std::make_unique<match_queue>();
    }
    return *found;
}

void match_queue_table::close(std::uint64_t group_id) {
    std::lock_guard const guard(mutex_);
    closed_[num_closed_++ % num_remembered_ids] = group_id + 1;
    find(group_id); // waits for a handler that is delivering a message
    queues_.erase(group_id);
}

match_queue_table::locked_queue match_queue_table::lock(std::uint64_t group_id) {
    std::lock_guard const guard(mutex_);
    return find(group_id);
}

match_queue_table::locked_queue match_queue_table::lock_or_create(std::uint64_t group_id) {
    std::lock_guard const guard(mutex_);
    locked_queue own = find(group_id);
    if (own.found == nullptr && std::ranges::find(closed_, group_id + 1) == closed_.end()) {
        queues_[group_id] = std::make_unique<match_queue>();
        own = find(group_id);
    }
    return own;
}

match_queue_table::locked_queue match_queue_table::find(std::uint64_t group_id) {
    auto const found = queues_.find(group_id);
    return found == queues_.end() ? locked_queue{}
                                  : locked_queue{found->second.get(), found->second->lock()};
}

} // namespace diomp::group
