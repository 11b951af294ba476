// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/backlog.h"

namespace diomp::transport::gasnet {

bool backlog::add(const network_peer &to, pending_transfer &&transfer) {
    std::lock_guard const guard(mutex_);
    if (to.is_failed()) {
        return false;
    }
    copied_bytes_.fetch_add(transfer.copy.size(), std::memory_order_relaxed);
    waiting_.push_back(std::move(transfer));
    num_waiting_.fetch_add(1, std::memory_order_release);
    return true;
}

void backlog::finish_front(int code) {
    pending_transfer const &front = waiting_.front();
    if (front.source_free != nullptr) {
        front.source_free->end(code);
    }
    copied_bytes_.fetch_sub(front.copy.size(), std::memory_order_relaxed);
    num_waiting_.fetch_sub(1, std::memory_order_release);
    waiting_.pop_front();
}

} // namespace diomp::transport::gasnet
