// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/common/message_queue.h"

#include "base/assert.h"

#include <cstring>

namespace diomp::transport {
namespace {

/// Precedes each message; header and payload are padded to its alignment.
struct message_header {
    std::int32_t source;
    std::uint32_t nbytes;
    std::uint64_t handler;
};

constexpr std::size_t padded(std::size_t nbytes) {
    return (nbytes + alignof(message_header) - 1) / alignof(message_header) *
           alignof(message_header);
}

} // namespace

void message_queue::add(world_rank source, handler_id handler, const std::byte *payload,
                        std::size_t nbytes) {
    message_header const head{source.value(), static_cast<std::uint32_t>(nbytes), handler};
    std::size_t const at = messages_.size();
    messages_.resize(at + sizeof(head) + padded(nbytes));
    std::memcpy(messages_.data() + at, &head, sizeof(head));
    if (nbytes > 0) {
        std::memcpy(messages_.data() + at + sizeof(head), payload, nbytes);
    }
    has_messages_.store(true, std::memory_order_release);
}

int message_queue::dispatch(const std::vector<std::byte> &messages, message_handler handle) {
    int handled = 0;
    for (std::size_t at = 0; at < messages.size();) {
        DIOMP_ASSERT(messages.size() - at >= sizeof(message_header), "headers are whole");
        message_header head;
        std::memcpy(&head, messages.data() + at, sizeof(head));
        at += sizeof(head);
        DIOMP_ASSERT(head.nbytes <= messages.size() - at, "payloads are whole");
        handle(message{world_rank{head.source},
                       static_cast<handler_id>(head.handler),
                       {messages.data() + at, head.nbytes},
                       {}});
        at += padded(head.nbytes);
        ++handled;
    }
    return handled;
}

int arrivals::dispatch(message_handler handle) {
    if (dispatching_.test_and_set(std::memory_order_acquire)) {
        return 0;
    }
    messages_in_dispatch_.clear();
    {
        std::lock_guard const guard(mutex_);
        queue_.swap(messages_in_dispatch_);
    }
    int const handled = message_queue::dispatch(messages_in_dispatch_, handle);
    dispatching_.clear(std::memory_order_release);
    return handled;
}

void arrivals::set_am_long_handler(const am_long_handler &handle,
                                   const recv_buffer_callback &find_buffer) {
    std::lock_guard const guard(mutex_);
    long_handler_ = handle;
    recv_buffer_callback_ = find_buffer;
}

void arrivals::handle_long(const message &arrived) {
    std::lock_guard const guard(mutex_);
    if (long_handler_) {
        long_handler_(arrived);
        long_handled_.store(true, std::memory_order_relaxed);
    }
}

std::byte *arrivals::find_recv_buffer(const message &incoming, std::size_t nbytes) {
    std::lock_guard const guard(mutex_);
    return recv_buffer_callback_ ? recv_buffer_callback_(incoming, nbytes) : nullptr;
}

} // namespace diomp::transport
