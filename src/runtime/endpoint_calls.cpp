// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/endpoint_calls.h"

#include <algorithm>

namespace diomp::runtime {

void endpoint_calls::add(std::size_t place, part added, const std::function<void(set)> &hand_on) {
    std::lock_guard const guard(mutex_);
    waiting_[place].push_back(std::move(added));
    if (std::ranges::any_of(waiting_, [](const auto &queue) { return queue.empty(); })) {
        return;
    }
    set complete;
    for (auto &queue : waiting_) {
        complete.push_back(std::move(queue.front()));
        queue.pop_front();
    }
    hand_on(std::move(complete));
}

bool endpoint_calls::withdraw(std::size_t place, const ompx_event *event) {
    std::lock_guard const guard(mutex_);
    return std::erase_if(waiting_[place],
                         [event](const part &each) { return each.event == event; }) > 0;
}

std::vector<endpoint_calls::part> endpoint_calls::withdraw_all() {
    std::lock_guard const guard(mutex_);
    std::vector<part> taken;
    for (auto &queue : waiting_) {
        std::move(queue.begin(), queue.end(), std::back_inserter(taken));
        queue.clear();
    }
    return taken;
}

} // namespace diomp::runtime
