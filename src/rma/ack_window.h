// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations by message whose caller does not wait: each gets a number, and a fence waits until all
// numbers given before it are acknowledged, whatever other threads start meanwhile.
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <atomic>
#include <bitset>
#include <cstdint>
#include <mutex>
#include <optional>

namespace diomp::rma {

/// Any thread; never blocks.
class ack_window {
public:
    /// Numbers between the oldest that is not acknowledged and the next one. It bounds the messages
    /// that wait anywhere on behalf of this rank.
    static constexpr std::uint64_t capacity = 1024;

    /// nullopt: full.
    std::optional<std::uint64_t> try_open();
    /// Acknowledges a number; once each. `failure`: an OMPX_ERR_* that nobody has been told yet.
    void close(std::uint64_t number, world_rank peer, int failure = 0);

    /// The first number not given yet.
    [[nodiscard]] std::uint64_t end() const { return next_.load(std::memory_order_acquire); }
    [[nodiscard]] bool all_closed_before(std::uint64_t number) const {
        return lowest_.load(std::memory_order_acquire) >= number;
    }
    /// The first failure since the last call.
    status take_failure();

private:
    std::mutex mutex_; ///< leaf lock over closed_, first_failure_ and changes of the counters
    std::bitset<capacity> closed_; ///< [number % capacity], of numbers from lowest_ on
    std::optional<error> first_failure_;
    std::atomic<std::uint64_t> next_{0};
    std::atomic<std::uint64_t> lowest_{0}; ///< all below are acknowledged
    std::atomic<bool> failed_{false};
};

} // namespace diomp::rma
