// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "messaging/internal/outbox.h"

#include "base/assert.h"
#include "transport/conduit.h"

namespace diomp::messaging {

bool outbox::send_or_keep(world_rank peer, transport::handler_id handler,
                          std::span<const std::byte> payload) {
    transport::active_messages &messages = conduit_.messages(peer);
    if (!has_messages() && messages.try_send(peer, handler, payload)) [[likely]] {
        return false;
    }
    std::lock_guard const guard(mutex_);
    if (!waiting_.contains(peer.value()) && messages.try_send(peer, handler, payload)) {
        return false;
    }
    waiting_[peer.value()].push_back({handler, {payload.begin(), payload.end()}});
    num_pending_.fetch_add(1, std::memory_order_release);
    return true;
}

bool outbox::flush() {
    std::unique_lock const guard(mutex_, std::try_to_lock);
    if (!guard.owns_lock()) {
        return false;
    }
    bool moved = false;
    for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
        world_rank const peer{waiting->first};
        auto &messages = waiting->second;
        while (!messages.empty() && conduit_.messages(peer).try_send(peer, messages.front().handler,
                                                                     messages.front().payload)) {
            messages.pop_front();
            [[maybe_unused]] auto const before =
                num_pending_.fetch_sub(1, std::memory_order_release);
            DIOMP_ASSERT(before > 0, "every waiting message is counted");
            moved = true;
        }
        waiting = messages.empty() ? waiting_.erase(waiting) : std::next(waiting);
    }
    DIOMP_ASSERT(!waiting_.empty() || !has_messages(), "every waiting message is counted");
    return moved;
}

} // namespace diomp::messaging
