// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tracks whether threads poll a network, or sleep on its descriptor and poll when they wake; if so,
// the network thread need not.
#pragma once

#include <atomic>
#include <cstdint>

namespace diomp::transport {

enum class polling : std::uint8_t {
    none,    ///< no thread polls, or has polled lately
    recent,  ///< a thread has polled since the last call, without begin()
    watched, ///< all threads that poll sleep on the descriptor
    active,  ///< a thread polls
};

/// Thread-safe, except state().
class poller_count {
public:
    void begin() { num_pollers_.fetch_add(1, std::memory_order_relaxed); }
    void end() { num_pollers_.fetch_sub(1, std::memory_order_seq_cst); }
    /// Between these two calls a thread that polls sleeps on the descriptor.
    void begin_sleep() { num_asleep_.fetch_add(1, std::memory_order_relaxed); }
    void end_sleep() { num_asleep_.fetch_sub(1, std::memory_order_relaxed); }
    /// Records a poll, also of a thread that did not call begin(). Increments may get lost; only a
    /// change of the count matters.
    void note_poll() {
        num_polls_.store(num_polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    /// Network thread only.
    [[nodiscard]] polling state() {
        std::uint32_t const polls = num_polls_.load(std::memory_order_relaxed);
        bool const has_polled = polls != polls_seen_;
        polls_seen_ = polls;
        int const asleep = num_asleep_.load(std::memory_order_relaxed);
        int const pollers = num_pollers_.load(std::memory_order_seq_cst);
        if (pollers > asleep) {
            return polling::active;
        }
        return pollers > 0 ? polling::watched : has_polled ? polling::recent : polling::none;
    }

private:
    std::atomic<int> num_pollers_{0}; ///< those that sleep included
    std::atomic<int> num_asleep_{0};
    std::atomic<std::uint32_t> num_polls_{0};
    std::uint32_t polls_seen_ = 0;
};

} // namespace diomp::transport
