// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/message_queue.h"

#include <cstring>

namespace diomp::conduit {
namespace {

/// In front of each message; both are multiples of its alignment.
struct front {
    std::int32_t source;
    std::uint32_t nbytes;
    std::uint64_t handler;
};

constexpr std::size_t padded(std::size_t nbytes) {
    return (nbytes + alignof(front) - 1) / alignof(front) * alignof(front);
}

} // namespace

void message_queue::add(world_rank source, handler_id handler, const std::byte *payload,
                        std::size_t nbytes) {
    front const head{source.value(), static_cast<std::uint32_t>(nbytes), handler};
    std::size_t const at = messages_.size();
    messages_.resize(at + sizeof(head) + padded(nbytes));
    std::memcpy(messages_.data() + at, &head, sizeof(head));
    if (nbytes > 0) {
        std::memcpy(messages_.data() + at + sizeof(head), payload, nbytes);
    }
    has_messages_.store(true, std::memory_order_release);
}

int message_queue::hand_over(const std::vector<std::byte> &messages, message_sink sink) {
    int handled = 0;
    for (std::size_t at = 0; at < messages.size();) {
        front head;
        std::memcpy(&head, messages.data() + at, sizeof(head));
        at += sizeof(head);
        sink(message{world_rank{head.source},
                     static_cast<handler_id>(head.handler),
                     {messages.data() + at, head.nbytes},
                     {}});
        at += padded(head.nbytes);
        ++handled;
    }
    return handled;
}

void arrivals::receive_bulk_with(const bulk_sink &sink, const bulk_placer &placer) {
    std::lock_guard const guard(mutex_);
    bulk_sink_ = sink;
    bulk_placer_ = placer;
}

void arrivals::take_bulk(const message &arrived) {
    std::lock_guard const guard(mutex_);
    if (bulk_sink_) {
        bulk_sink_(arrived);
        bulk_news_.store(true, std::memory_order_relaxed);
    }
}

std::byte *arrivals::place_bulk(const message &announced, std::size_t nbytes) {
    std::lock_guard const guard(mutex_);
    return bulk_placer_ ? bulk_placer_(announced, nbytes) : nullptr;
}

} // namespace diomp::conduit
