// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Deferred work: batches of a device that are complete for OpenMP as soon as they have been sent.
//
// A target region with nowait is deferred if it returns no data, is short and accesses nothing but
// memory of its device. This is not observable: the next operation of every queue waits in the
// session for all work deferred before (queue::order_after_deferred). Regions that depend on each
// other thus avoid a round trip each. Longer regions are waited for, so that independent ones run
// concurrently.
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

/// Completion of all operations that a queue had been given when the event was recorded.
struct event {
    queue *owner = nullptr;
    std::uint64_t batch = 0;  ///< 0: no operation to wait for
    std::uint64_t number = 0; ///< of the queue
};

/// The deferred work of one device. Any thread; nothing blocks.
class deferred_work {
public:
    /// Kernels that took longer the last time are not deferred.
    static constexpr std::chrono::microseconds max_kernel_time{100};
    /// Maximum number of unacknowledged batches.
    static constexpr std::size_t max_pending = 64;

    void set_enabled(bool wanted) {
        std::lock_guard const guard(mutex_);
        is_enabled_ = wanted;
    }
    /// The queue that waits for the end of all deferred work, for a thread that must not wait
    /// itself: sessions do not acknowledge each batch. Null: none does.
    struct outstanding_wait {
        std::mutex mutex;
        queue *by = nullptr;
    };
    [[nodiscard]] outstanding_wait &awaited() { return awaited_; }
    /// Declares that these kernels change nothing but memory (effects.h).
    void add_memory_only(std::span<const std::uint64_t> kernels);
    /// Records how long a kernel took.
    void record_time(std::uint64_t kernel, std::chrono::microseconds taken);
    /// Whether a batch that launches these kernels may be deferred.
    [[nodiscard]] bool can_defer(std::span<const std::uint64_t> kernels) const;

    /// Adds a batch. Call before the batch is sent.
    void add(const event &batch);
    /// Handles a reply: the deferred batches of `owner` up to `batch` are complete. False: there
    /// were none.
    bool complete(const queue *owner, std::uint64_t batch);
    /// Completes all batches up to a generation, because work ordered after them is complete.
    /// Returns those that were pending.
    std::vector<event> complete_up_to(std::uint64_t generation);

    /// Number of batches deferred so far.
    [[nodiscard]] std::uint64_t generation() const {
        return generation_.load(std::memory_order_acquire);
    }
    /// The last incomplete batch of each queue.
    [[nodiscard]] std::vector<event> pending() const;
    [[nodiscard]] bool is_empty() const;

private:
    std::atomic<std::uint64_t> generation_{0};
    mutable std::mutex mutex_; ///< leaf lock; protects the rest
    bool is_enabled_ = false;
    struct entry {
        event batch;
        std::uint64_t generation; ///< value of generation_ after this batch was added
    };
    std::deque<entry> batches_; ///< in the order in which they were deferred
    /// [memory-only kernel] its last execution time.
    std::unordered_map<std::uint64_t, std::chrono::microseconds> times_;
    outstanding_wait awaited_; ///< has its own lock
};

} // namespace diomp::offload::remote
