// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tracks operations by message whose caller does not wait. Each operation gets a number, which the
// target acknowledges. A fence waits until all numbers given before it are acknowledged, but not
// for operations that other threads start meanwhile.
#pragma once

#include "messaging/engine.h"

#include <atomic>
#include <bitset>
#include <cstdint>
#include <mutex>
#include <optional>

namespace diomp::rma {

/// Any thread. Create before engine.start().
class ack_window {
public:
    explicit ack_window(messaging::engine &engine);

    /// Takes the next number; blocks while the window is full.
    result<std::uint64_t> open();
    /// Acknowledges a number of this rank; once each. `failure`: an OMPX_ERR_* for the next fence
    /// to report, or 0. Does not block.
    void close(std::uint64_t number, world_rank peer, int failure = 0);
    /// Acknowledges a number of another rank, at the target. Does not block.
    void acknowledge(world_rank requester, std::uint64_t number, int failure);
    /// Waits until all operations that began before this call are acknowledged; returns the first
    /// failure since the last call.
    status wait();

private:
    /// Largest distance between the oldest unacknowledged number and the next one. Bounds the
    /// messages of this rank that are queued anywhere.
    static constexpr std::uint64_t capacity = 1024;
    struct acknowledgement {
        std::uint64_t number = 0;
        std::int64_t failure = 0;
    };

    std::optional<std::uint64_t> try_open();
    status take_failure();
    void on_acknowledgement(const transport::message &incoming);

    messaging::engine &engine_;
    transport::handler_id handler_;
    std::mutex mutex_; ///< leaf lock over closed_, first_failure_ and changes of the counters
    std::bitset<capacity> closed_; ///< [number % capacity], numbers from lowest_ on
    std::optional<error> first_failure_;
    std::atomic<std::uint64_t> next_{0};
    std::atomic<std::uint64_t> lowest_{0}; ///< all below are acknowledged
    std::atomic<bool> failed_{false};
};

} // namespace diomp::rma
