// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/queue_replies.h"

#include <utility>

namespace diomp::offload::remote {

void queue_replies::expect(std::uint64_t batch) {
    std::lock_guard const guard(mutex_);
    expected_ = batch;
    has_expected_.store(false, std::memory_order_relaxed);
}

bool queue_replies::accept(const batch_reply &reply) {
    std::lock_guard const guard(mutex_);
    if (reply.batch != expected_) {
        return false;
    }
    encoded_ = encode(reply);
    has_expected_.store(true, std::memory_order_release);
    return true;
}

std::string queue_replies::take() {
    std::lock_guard const guard(mutex_);
    expected_ = 0;
    has_expected_.store(false, std::memory_order_relaxed);
    return std::exchange(encoded_, {});
}

void queue_replies::complete_up_to(std::uint64_t batch) {
    std::uint64_t seen = completed_.load(std::memory_order_relaxed);
    while (seen < batch && !completed_.compare_exchange_weak(seen, batch, std::memory_order_release,
                                                             std::memory_order_relaxed)) {
    }
}

} // namespace diomp::offload::remote
