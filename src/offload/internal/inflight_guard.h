// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tracks memory of own devices that transfers of this rank still use after their calls have
// returned. Memory that the program frees or unmaps meanwhile is freed after these transfers:
// otherwise the network would access whatever the memory is reused for.
#pragma once

#include "rma/event.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace diomp::rma {
class transfers;
}

namespace diomp::offload {

/// Thread-safe.
class inflight_guard {
public:
    /// `progress`: makes progress of transfers that no conduit of the job carries.
    inflight_guard(rma::transfers &transfers, std::function<void()> progress)
        : transfers_(transfers), progress_(std::move(progress)) {}

    /// Marks [begin, begin + nbytes) as in use until `until` is done; null: not in use.
    void add(const std::byte *begin, std::size_t nbytes, rma::local_completion until);

    /// Records that a stream copies without a call that waits for it.
    void add_copy() { has_unwaited_copies_.store(true, std::memory_order_release); }
    /// Waits for the copies by streams, which may use any memory.
    status wait_for_copies();

    /// True if all ranges added so far have been found unused since. May lag behind: a range counts
    /// as in use until prune_finished() or wait_until_unused() has seen its end.
    [[nodiscard]] bool empty() const { return num_.load(std::memory_order_acquire) == 0; }
    /// Waits until no transfer uses any part of [begin, begin + nbytes). Ignores ranges that other
    /// threads add meanwhile.
    status wait_until_unused(const std::byte *begin, std::size_t nbytes);

private:
    struct inflight_range {
        std::uintptr_t begin;
        std::uintptr_t end;
        rma::local_completion until;
    };
    /// Call under the mutex.
    void prune_finished();

    rma::transfers &transfers_;
    std::function<void()> const progress_;
    std::atomic<bool> has_unwaited_copies_{false};
    std::atomic<std::size_t> num_{0}; ///< size of ranges_
    std::mutex mutex_;                ///< leaf lock; guards the members below
    std::vector<inflight_range> ranges_;
    std::size_t next_prune_at_ = 64; ///< size of ranges_ at which finished ranges are pruned
};

} // namespace diomp::offload
