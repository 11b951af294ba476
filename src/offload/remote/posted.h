// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Work of a device that OpenMP takes for done as soon as it has been sent.
//
// A region with nowait that brings nothing back, is short and touches nothing but memory of its
// device ends for OpenMP when its batch has left. Nobody can tell: whatever uses the device
// afterwards follows it there, since every queue's next operation waits in the session for all that
// was posted before (queue::follow). So regions that depend on each other do not cost a round trip
// each. Longer regions are waited for, so that independent ones run side by side.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace diomp::offload::remote {

class queue;

/// Something that has happened when a queue was done with all that it had been given.
struct event {
    queue *of = nullptr;
    std::uint64_t batch = 0; ///< 0: nothing was recorded
};

/// Of one device. Any thread; nothing blocks.
class posted_work {
public:
    /// Kernels that have taken longer are waited for.
    static constexpr std::chrono::microseconds longest{100};
    /// Batches without an answer.
    static constexpr std::size_t most = 64;

    void allow(bool wanted) { is_allowed_ = wanted; }
    /// These kernels change nothing but memory (effects.h).
    void note_quiet(std::span<const std::uint64_t> kernels);
    /// A kernel has run.
    void note_time(std::uint64_t kernel, std::chrono::microseconds taken);
    /// Whether a batch that launches these may be posted.
    [[nodiscard]] bool admits(std::span<const std::uint64_t> kernels) const;

    /// Before the batch is sent.
    void add(const event &batch);
    /// An answer came: what `of` had posted up to `batch` is done. False: it had posted nothing.
    bool settle(const queue *of, std::uint64_t batch);
    /// What followed the first so many is done, and so are they. Returns what was pending of them.
    std::vector<event> settle_first(std::uint64_t generation);

    /// Of what has been posted so far.
    [[nodiscard]] std::uint64_t generation() const {
        return generation_.load(std::memory_order_acquire);
    }
    /// What is not known to be done: of each queue the last batch.
    [[nodiscard]] std::vector<event> pending() const;
    [[nodiscard]] bool is_empty() const;

private:
    bool is_allowed_ = false; ///< fixed before the first use
    std::atomic<std::uint64_t> generation_{0};
    mutable std::mutex mutex_; ///< leaf lock over the rest
    struct entry {
        event batch;
        std::uint64_t generation; ///< with it
    };
    std::deque<entry> batches_; ///< in the order in which they were posted
    /// [quiet kernel] how long it took the last time.
    std::unordered_map<std::uint64_t, std::chrono::microseconds> times_;
};

} // namespace diomp::offload::remote
