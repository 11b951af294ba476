// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The word of a lock, in the slot of the rank where the lock resides. 0: free. Otherwise it names
// the rank that holds it, and has a bit that says whether requests wait in the queue of the lock's
// own rank. Ranks that map the slot acquire a free lock, and release it, with one
// compare-and-swap each; while the queue is not empty, only the lock's own rank changes the word.
#pragma once

#include "base/assert.h"
#include "base/ids.h"

#include <atomic>
#include <cstdint>
#include <optional>

namespace diomp::sync {

class lock_word {
public:
    explicit lock_word(std::atomic<std::uint64_t> &word) : word_(word) {}

    bool try_take(world_rank rank) const {
        std::uint64_t none = 0;
        return word_.load(std::memory_order_relaxed) == 0 &&
               word_.compare_exchange_strong(none, held_by(rank), std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }
    /// Called by the holder. false: the queue is not empty, send a release to the lock's own rank.
    bool try_release(world_rank holder) const {
        std::uint64_t expected = held_by(holder);
        return word_.compare_exchange_strong(expected, 0, std::memory_order_release,
                                             std::memory_order_relaxed);
    }
    [[nodiscard]] bool has_queue() const {
        return (word_.load(std::memory_order_relaxed) & queued) != 0;
    }
    [[nodiscard]] std::optional<world_rank> holder() const {
        std::uint64_t const now = word_.load(std::memory_order_relaxed);
        return now == 0 ? std::nullopt
                        : std::optional(world_rank{static_cast<std::int32_t>(now >> 1) - 1});
    }

    // Called by the lock's own rank only, which keeps the queue.

    /// true: taken. false: it is held; its holder will send a release, since the queue bit is set.
    bool take_or_queue(world_rank rank) const {
        std::uint64_t now = word_.load(std::memory_order_relaxed);
        for (;;) {
            std::uint64_t const next = now == 0 ? held_by(rank) : now | queued;
            if (word_.compare_exchange_weak(now, next, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
                return now == 0;
            }
        }
    }
    /// The last request has left the queue without having been granted.
    void stop_queueing() const { word_.fetch_and(~queued, std::memory_order_relaxed); }
    /// On behalf of the holder, which has sent a release.
    void set_free() const {
        DIOMP_ASSERT(holder(), "only a held lock is released");
        word_.store(0, std::memory_order_release);
    }
    void grant_to(world_rank next, bool more_wait) const {
        DIOMP_ASSERT(holder(), "a lock is passed on by its holder");
        word_.store(held_by(next) | (more_wait ? queued : 0), std::memory_order_release);
    }

private:
    static constexpr std::uint64_t queued = 1;

    static std::uint64_t held_by(world_rank rank) {
        return (static_cast<std::uint64_t>(rank.value()) + 1) << 1;
    }

    std::atomic<std::uint64_t> &word_;
};

} // namespace diomp::sync
