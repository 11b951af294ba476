// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks over active messages (DiOMP 2024, figure 2). A lock resides at its target rank: a word that
// names its holder, and a queue of waiting ranks. Ranks that map the target's slot take a free lock
// by themselves (lock_word.h); all others send a request, and are granted the lock in the order in
// which their requests arrive, by a reply to the first in the queue. Two lock spaces per target:
// one whose owner is a rank, one whose owner is a thread of a rank.
#pragma once

#include "base/biased_mutex.h"
#include "base/ids.h"
#include "base/result.h"
#include "messaging/request.h"
#include "sync/internal/lock_word.h"
#include "transport/types.h"

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::sync {

enum class lock_space : std::uint32_t { ranks, threads };

/// Thread-safe. Create before engine.start(). The ranks passed must be valid.
class locks {
public:
    locks(messaging::engine &engine, messaging::call_service &calls, world_rank self);

    /// Blocks until granted. OMPX_ERR_LOCK if the rank (or thread) holds the lock already or is
    /// waiting for it.
    status acquire(world_rank target, lock_space space);
    /// true: taken. Does not block if the target is direct, else for one exchange of messages.
    result<bool> try_acquire(world_rank target, lock_space space);
    /// OMPX_ERR_LOCK if the caller does not hold it. Does not block if the target is direct, else
    /// for one exchange of messages.
    status release(world_rank target, lock_space space);

    /// Number of locks that this rank holds, for the warning at exit.
    [[nodiscard]] int num_held() const;

private:
    enum class action : std::uint32_t { acquire, try_acquire, release, cancel, confirm };
    struct request {
        messaging::request_header header; ///< cancel: id of the acquire
        action what = action::acquire;
        lock_space space = lock_space::ranks;
    };
    struct lock_reply {
        std::uint64_t granted = 0;
    };
    struct waiter {
        world_rank rank;
        std::uint64_t id = 0;
        auto operator<=>(const waiter &) const = default;
    };
    /// A lock of this rank.
    struct lock_state {
        std::deque<waiter> waiting;
        waiter granted; ///< the last request granted by message
    };
    /// A lock that this rank (or in the thread space, this thread) holds or is acquiring.
    struct held_lock {
        world_rank target;
        lock_space space = lock_space::ranks;
        /// 0 in the rank space: the lock belongs to the rank, whichever thread calls
        std::uint64_t thread;
        bool is_acquired = false; ///< false: being acquired
    };

    /// The word of a direct target; nullopt for others.
    [[nodiscard]] std::optional<lock_word> word_of(world_rank target, lock_space space) const;
    result<bool> take(action what, world_rank target, lock_space space);
    result<bool> request_lock(action what, world_rank target, lock_space space);
    bool spin_acquire(const lock_word &word) const;
    std::string describe_wait(world_rank target, lock_space space) const;

    std::vector<held_lock>::iterator find_held(world_rank target, lock_space space);
    void finish_acquire(world_rank target, lock_space space, bool is_acquired);

    void on_request(const transport::message &incoming);
    bool grant_or_queue(const waiter &from, lock_space space);
    void cancel_request(const waiter &from, lock_space space);
    void grant_next(lock_space space);

    messaging::engine &engine_;
    messaging::call_service &calls_;
    world_rank self_;
    transport::handler_id handler_;
    /// leaf lock over lock_states_, and over changes to the words that only this rank makes
    std::mutex states_mutex_;
    std::array<lock_state, 2> lock_states_; ///< [space]
    mutable biased_mutex mutex_;            ///< leaf lock over held_
    std::vector<held_lock> held_;
};

} // namespace diomp::sync
