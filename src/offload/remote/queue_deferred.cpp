// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Deferred work of a queue, and the order of later operations after it.
#include "offload/remote/queue.h"

namespace diomp::offload::remote {
namespace {

constexpr int batches_per_reply = 16;

} // namespace

status queue::order_after_deferred(std::unique_lock<std::mutex> &lock, bool include_own) {
    std::uint64_t const now = device_.deferred().generation();
    if (ordered_generation_ == now && !include_own) {
        return {};
    }
    for (event const &each : device_.deferred().pending()) {
        if (each.owner != this || include_own) {
            DIOMP_TRY(append_wait(each, lock));
        }
    }
    ordered_generation_ = now;
    return {};
}

status queue::order_after_all_deferred() {
    std::unique_lock lock(mutex_);
    return order_after_deferred(lock, true);
}

bool queue::can_defer() const {
    return has_work_ && small_gets_.empty() && large_gets_.empty() && stage_buffers_.empty() &&
           !has_copies_ && !put_completion_ && device_.deferred().can_defer(kernels_);
}

void queue::defer() {
    device_.deferred().add({this, batch_});
    transmit_deferred();
}

void queue::transmit_deferred() {
    if (++num_unacknowledged_ >= batches_per_reply) {
        num_unacknowledged_ = 0;
        append_operation(pending_operations_, operation::finish);
    }
    transmit(false);
    discard_pending();
}

status queue::release_idle_pages() {
    std::unique_lock lock(mutex_);
    for (bool is_sent = false; !is_sent;) {
        DIOMP_TRY(order_after_deferred(lock, true));
        DIOMP_TRY(reserve_space(8 + device_memory::max_ranges * 16, lock));
        device_.slot().release_idle([&](std::span<const device_memory::range> ranges) {
            if (device_.deferred().generation() != ordered_generation_) {
                return false; // work deferred in the meantime may still use them
            }
            append_operation(pending_operations_, operation::release_pages);
            pending_operations_.number(static_cast<std::uint32_t>(ranges.size()));
            for (device_memory::range const &each : ranges) {
                pending_operations_.number(each.address);
                pending_operations_.number(each.nbytes);
            }
            device_.deferred().add({this, batch_});
            return is_sent = true;
        });
    }
    transmit_deferred();
    return {};
}

} // namespace diomp::offload::remote
