// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tracks operations by message whose caller does not wait. Each operation gets a number. A fence
// waits until all numbers given before it are acknowledged, but not for operations that other
// threads start meanwhile.
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
    /// Largest distance between the oldest unacknowledged number and the next one. Bounds the
    /// messages of this rank that are queued anywhere.
    static constexpr std::uint64_t capacity = 1024;

    /// Takes the next number; nullopt if the window is full.
    std::optional<std::uint64_t> try_open();
    /// Acknowledges a number; once each. `failure`: an OMPX_ERR_* for the next fence to report, or
    /// 0.
    void close(std::uint64_t number, world_rank peer, int failure = 0);

    /// The next number to be given.
    [[nodiscard]] std::uint64_t end() const { return next_.load(std::memory_order_acquire); }
    [[nodiscard]] bool all_closed_before(std::uint64_t number) const {
        return lowest_.load(std::memory_order_acquire) >= number;
    }
    /// Whether this number, which was given, is acknowledged.
    [[nodiscard]] bool is_closed(std::uint64_t number);
    /// Takes the first failure since the last call.
    status take_failure();

private:
    std::mutex mutex_; ///< leaf lock over closed_, first_failure_ and changes of the counters
    std::bitset<capacity> closed_; ///< [number % capacity], numbers from lowest_ on
    std::optional<error> first_failure_;
    std::atomic<std::uint64_t> next_{0};
    std::atomic<std::uint64_t> lowest_{0}; ///< all below are acknowledged
    std::atomic<bool> failed_{false};
};

} // namespace diomp::rma
