// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tracks whether threads poll a network; if so, the network thread need not.
#pragma once

#include <atomic>
#include <cstdint>

namespace diomp::transport {

/// Thread-safe, except is_polled().
class poller_count {
public:
    void begin() { num_pollers_.fetch_add(1, std::memory_order_relaxed); }
    void end() { num_pollers_.fetch_sub(1, std::memory_order_relaxed); }
    /// Records a poll, also of a thread that did not call begin(). Increments may get lost; only a
    /// change of the count matters.
    void note_poll() {
        num_polls_.store(num_polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    /// True if a thread polls, or has polled since the last call. Network thread only.
    [[nodiscard]] bool is_polled() {
        std::uint32_t const polls = num_polls_.load(std::memory_order_relaxed);
        bool const was_polled =
            num_pollers_.load(std::memory_order_seq_cst) > 0 || polls != polls_seen_;
        polls_seen_ = polls;
        return was_polled;
    }

private:
    std::atomic<int> num_pollers_{0};
    std::atomic<std::uint32_t> num_polls_{0};
    std::uint32_t polls_seen_ = 0;
};

} // namespace diomp::transport
