// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether anybody polls a network, so that its thread need not.
#pragma once

#include <atomic>
#include <cstdint>

namespace diomp::conduit {

/// Any thread, but for is_kept().
class attendance {
public:
    void begin() { num_pollers_.fetch_add(1, std::memory_order_relaxed); }
    void end() { num_pollers_.fetch_sub(1, std::memory_order_relaxed); }
    /// Somebody polls, whether it has said begin() or not. Counts may get lost; that they change
    /// matters.
    void note_poll() {
        num_polls_.store(num_polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    /// Somebody polls, or has polled since the last call. The network thread only.
    [[nodiscard]] bool is_kept() {
        std::uint32_t const polls = num_polls_.load(std::memory_order_relaxed);
        bool const kept = num_pollers_.load(std::memory_order_seq_cst) > 0 || polls != polls_seen_;
        polls_seen_ = polls;
        return kept;
    }

private:
    std::atomic<int> num_pollers_{0};
    std::atomic<std::uint32_t> num_polls_{0};
    std::uint32_t polls_seen_ = 0;
};

} // namespace diomp::conduit
