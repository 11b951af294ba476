// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/two_level.h"

#include <algorithm>

namespace diomp::coll {

// Messages of receives that are still posted would arrive in memory that may have been freed.
message_stream::~message_stream() {
    for (group::recv_request &each : requests_) {
        channel_.cancel(each);
    }
}

std::size_t message_stream::post_recv(std::size_t from, std::span<std::byte> data) {
    std::size_t const first = requests_.size();
    for (std::size_t message = 0; message < num_messages(data.size()); ++message) {
        std::size_t const at = message * message_bytes_;
        channel_.post_recv(requests_.emplace_back(), from, step(message),
                           data.subspan(at, std::min(message_bytes_, data.size() - at)), rtr_);
    }
    return first;
}

status message_stream::send_message(std::size_t to, std::span<const std::byte> data,
                                    std::size_t message) {
    std::size_t const at = message * message_bytes_;
    return channel_.send(to, step(message),
                         data.subspan(at, std::min(message_bytes_, data.size() - at)), rtr_);
}

status message_stream::send(std::size_t to, std::span<const std::byte> data) {
    for (std::size_t message = 0; message < num_messages(data.size()); ++message) {
        DIOMP_TRY(send_message(to, data, message));
    }
    return {};
}

status message_stream::wait_received(std::size_t index) {
    return channel_.wait_received(requests_[index]);
}

status message_stream::wait_all_received() {
    for (std::size_t index = 0; index < requests_.size(); ++index) {
        DIOMP_TRY(wait_received(index));
    }
    return {};
}

chunking chunks_of(const two_level_call &call, std::size_t nbytes) {
    std::size_t const fitting = nbytes / call.unit_bytes;
    // Multiples of cache lines, so that operands in scratch memory stay aligned.
    std::size_t const lines = fitting / cache_line_bytes * cache_line_bytes;
    return {call.args.amount, std::max<std::size_t>(1, lines > 0 ? lines : fitting)};
}

} // namespace diomp::coll
