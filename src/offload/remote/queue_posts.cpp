// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What nobody waits for, and what has to follow it.
#include "offload/remote/queue.h"

namespace diomp::offload::remote {
namespace {

constexpr int posts_per_answer = 16;

} // namespace

status queue::follow(std::unique_lock<std::mutex> &lock, bool and_own) {
    std::uint64_t const now = device_.posted().generation();
    if (followed_ == now && !and_own) {
        return {};
    }
    for (event const &each : device_.posted().pending()) {
        if (each.of != this || and_own) {
            DIOMP_TRY(append_wait(each, lock));
        }
    }
    followed_ = now;
    return {};
}

status queue::follow_all() {
    std::unique_lock lock(mutex_);
    return follow(lock, true);
}

bool queue::can_post() const {
    return has_work_ && small_gets_.empty() && large_gets_.empty() && stages_.empty() && !copies_ &&
           !landing_ && device_.posted().admits(kernels_);
}

void queue::post() {
    device_.posted().add({this, batch_});
    ship_posted();
}

void queue::ship_posted() {
    if (++num_unanswered_ >= posts_per_answer) {
        num_unanswered_ = 0;
        append_operation(gathered_, operation::finish);
    }
    ship(false);
    forget_gathered();
}

status queue::return_pages() {
    std::unique_lock lock(mutex_);
    for (bool is_sent = false; !is_sent;) {
        DIOMP_TRY(follow(lock, true));
        DIOMP_TRY(make_room(8 + device_memory::most_parts * 16, lock));
        device_.slot().return_idle([&](std::span<const device_memory::part> parts) {
            if (device_.posted().generation() != followed_) {
                return false; // what was posted meanwhile may use them still
            }
            append_operation(gathered_, operation::drop);
            gathered_.number(static_cast<std::uint32_t>(parts.size()));
            for (device_memory::part const &each : parts) {
                gathered_.number(each.address);
                gathered_.number(each.nbytes);
            }
            device_.posted().add({this, batch_});
            return is_sent = true;
        });
    }
    ship_posted();
    return {};
}

} // namespace diomp::offload::remote
