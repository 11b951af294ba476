// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The replies to one queue: which of its batches are complete, and the reply that it waits for.
#pragma once

#include "offload/remote/protocol.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

namespace diomp::offload::remote {

/// Any thread; nothing blocks.
class queue_replies {
public:
    /// Call before the last message of a batch is sent.
    void expect(std::uint64_t batch);
    /// Keeps a reply if the queue expects it. False: it does not.
    bool accept(const batch_reply &reply);
    /// Whether the expected reply has been received.
    [[nodiscard]] bool has_expected() const {
        return has_expected_.load(std::memory_order_acquire);
    }
    /// Returns the expected reply, encoded; no reply is expected afterwards.
    [[nodiscard]] std::string take();

    [[nodiscard]] bool has_completed(std::uint64_t batch) const {
        return completed_.load(std::memory_order_acquire) >= batch;
    }
    void complete_up_to(std::uint64_t batch);

private:
    std::atomic<std::uint64_t> completed_{0};
    std::mutex mutex_; ///< leaf lock; protects the next two
    std::string encoded_;
    std::uint64_t expected_ = 0; ///< batch; 0: none
    std::atomic<bool> has_expected_{false};
};

} // namespace diomp::offload::remote
