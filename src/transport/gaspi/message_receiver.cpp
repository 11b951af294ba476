// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/message_receiver.h"

#include <algorithm>

namespace diomp::transport::gaspi {

bool message_receiver::has_messages() const {
    if (polls_rings(peers_.size())) {
        record head{};
        return std::ranges::any_of(peers_, [&](auto &each) { return each->incoming.find(head); });
    }
    return find_notification(0, static_cast<std::uint32_t>(peers_.size())).has_value();
}

/// The next sender in round-robin order, so that a busy sender does not starve others.
peer *message_receiver::next_sender() {
    auto const size = static_cast<std::uint32_t>(peers_.size());
    std::uint32_t first = next_sender_;
    if (!polls_rings(size)) { // otherwise each sender in turn, with or without messages
        auto found = find_notification(first, size - first);
        if (!found && first > 0) {
            found = find_notification(0, first);
        }
        if (!found) {
            return nullptr;
        }
        first = *found;
        take_notification(first);
    }
    next_sender_ = (first + 1) % size;
    return peers_[first].get();
}

int message_receiver::receive(message_handler handle) {
    if (receiving_.test_and_set(std::memory_order_acquire)) {
        return 0;
    }
    receiver_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    int num_handled = 0;
    // At most one round over the senders, then the caller goes on with its own work.
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        peer *const from = next_sender();
        if (from == nullptr) {
            break;
        }
        num_handled += receive_from(*from, handle);
    }
    receiver_.store({}, std::memory_order_relaxed);
    receiving_.clear(std::memory_order_release);
    return num_handled;
}

int message_receiver::receive_from(peer &from, message_handler handle) {
    int num_handled = 0;
    receive_ring &ring = from.incoming;
    std::uint32_t const begin = ring.position();
    record head{};
    // At most one ring's length per call, and at least as far as the notification announced.
    while (distance(begin, ring.position()) < ring.num_units() && ring.find(head)) {
        if (head.is_filler == 0) {
            handle({from.rank(), head.handler, ring.payload_of(head), {}});
            ++num_handled;
        }
        ring.consume(head);
        if (ring.is_credit_due()) {
            std::uint32_t const position = ring.take_credit();
            std::lock_guard const guard(mutex_);
            credits_.send_credit(from, position);
        }
    }
    if (ring.position() != begin) {
        from.note_activity();
    }
    return num_handled;
}

} // namespace diomp::transport::gaspi
