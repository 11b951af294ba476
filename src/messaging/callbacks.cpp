// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "messaging/internal/callbacks.h"

#include <algorithm>
#include <iterator>

namespace diomp::messaging {

void callbacks::add(std::function<bool()> is_over, std::function<void()> then) {
    std::lock_guard const guard(mutex_);
    waiting_.push_back({std::move(is_over), std::move(then)});
    num_waiting_.fetch_add(1, std::memory_order_release);
}

bool callbacks::run() {
    std::vector<pending_callback> checked;
    {
        std::unique_lock const guard(mutex_, std::try_to_lock);
        if (!guard.owns_lock()) {
            return false;
        }
        checked.swap(waiting_);
    }
    auto const first = std::partition(checked.begin(), checked.end(),
                                      [](const pending_callback &each) { return !each.is_over(); });
    auto const num_finished = checked.end() - first;
    std::vector<pending_callback> const finished(std::make_move_iterator(first),
                                                 std::make_move_iterator(checked.end()));
    checked.erase(first, checked.end());
    {
        std::lock_guard const guard(mutex_);
        waiting_.insert(waiting_.end(), std::make_move_iterator(checked.begin()),
                        std::make_move_iterator(checked.end()));
    }
    for (pending_callback const &each : finished) {
        each.then();
    }
    num_waiting_.fetch_sub(static_cast<int>(num_finished), std::memory_order_release);
    return num_finished > 0;
}

} // namespace diomp::messaging
