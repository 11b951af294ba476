// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/internal/endpoint_calls.h"

#include <algorithm>

namespace diomp::device_coll {

void endpoint_calls::add(std::size_t own_index, endpoint_call added,
                         const std::function<void(call_set)> &submit) {
    std::lock_guard const guard(mutex_);
    waiting_[own_index].push_back(std::move(added));
    if (std::ranges::any_of(waiting_, [](const auto &queue) { return queue.empty(); })) {
        return;
    }
    call_set complete;
    for (auto &queue : waiting_) {
        complete.push_back(std::move(queue.front()));
        queue.pop_front();
    }
    submit(std::move(complete));
}

bool endpoint_calls::cancel(std::size_t own_index, const ompx_event *event) {
    std::lock_guard const guard(mutex_);
    return std::erase_if(waiting_[own_index],
                         [event](const endpoint_call &each) { return each.event == event; }) > 0;
}

std::vector<endpoint_calls::endpoint_call> endpoint_calls::cancel_all() {
    std::lock_guard const guard(mutex_);
    std::vector<endpoint_call> taken;
    for (auto &queue : waiting_) {
        std::move(queue.begin(), queue.end(), std::back_inserter(taken));
        queue.clear();
    }
    return taken;
}

} // namespace diomp::device_coll
