// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages that have arrived and wait for poll(), in one buffer.
#pragma once

#include "conduit/conduit.h"

#include <atomic>
#include <vector>

namespace diomp::conduit {

/// Under its owner's lock, but for what says otherwise.
class message_queue {
public:
    void add(world_rank source, handler_id handler, const std::byte *payload, std::size_t nbytes);
    /// Gives what waits for the content of `other`, which is used again.
    void swap(std::vector<std::byte> &other) {
        messages_.swap(other);
        has_messages_.store(!messages_.empty(), std::memory_order_release);
    }

    /// Any thread.
    [[nodiscard]] bool has_messages() const {
        return has_messages_.load(std::memory_order_acquire);
    }
    /// Walks through what swap() gave. Any thread.
    static int hand_over(const std::vector<std::byte> &messages, message_sink sink);

private:
    std::vector<std::byte> messages_;
    std::atomic<bool> has_messages_{false};
};

} // namespace diomp::conduit
