// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages whose peers had no space, kept in order until there is.
#pragma once

#include "transport/types.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace diomp::transport {
class conduit;
}

namespace diomp::messaging {

/// Thread-safe; uses a leaf lock of its own.
class outbox {
public:
    explicit outbox(transport::conduit &conduit) : conduit_(conduit) {}

    /// Sends the message at once if none waits for this peer and the peer has space; else keeps it,
    /// and returns true: it needs flush().
    bool send_or_keep(world_rank peer, transport::handler_id handler,
                      std::span<const std::byte> payload);
    /// Sends what there is space for; true if that was anything.
    bool flush();
    [[nodiscard]] bool has_messages() const {
        return num_pending_.load(std::memory_order_acquire) > 0;
    }

private:
    struct pending_message {
        transport::handler_id handler;
        std::vector<std::byte> payload;
    };

    transport::conduit &conduit_;
    std::mutex mutex_;
    /// By world rank; only peers with messages have an entry.
    std::unordered_map<int, std::deque<pending_message>> waiting_;
    std::atomic<int> num_pending_{0};
};

} // namespace diomp::messaging
