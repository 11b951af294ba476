// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks over active messages (DiOMP 2024, figure 2). A lock lives at its target rank: a word that
// says who holds it, and a queue of those who wait. Ranks that map the target's slot take a free
// lock by themselves (lock_word.h); all others ask by message, and are granted the lock in the
// order in which their requests arrive, by a message to the rank at the head. Two lock spaces per
// target: one whose owner is a rank, one whose owner is a thread of a rank.
#pragma once

#include "base/biased_mutex.h"
#include "conduit/call.h"
#include "sync/lock_word.h"

#include <array>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace diomp::sync {

enum class lock_space : std::uint32_t { ranks, threads };

/// Any thread. Create before engine.start(). Ranks are valid.
class locks {
public:
    locks(conduit::engine &engine, conduit::call_service &calls, world_rank self);

    /// Blocks until granted. OMPX_ERR_LOCK if the rank (or thread) has it or is about to get it.
    status acquire(world_rank target, lock_space space);
    /// true: taken. Does not block if the target is direct, else for one exchange of messages.
    result<bool> try_acquire(world_rank target, lock_space space);
    /// OMPX_ERR_LOCK if the caller does not hold it. Does not block if the target is direct, else
    /// for one exchange of messages.
    status release(world_rank target, lock_space space);

    /// Locks that this rank holds, for the warning at exit.
    [[nodiscard]] int num_held() const;

private:
    enum class verb : std::uint32_t { acquire, try_acquire, release, cancel, confirm };
    struct request {
        conduit::request_header header; ///< cancel: id of the acquire
        verb what = verb::acquire;
        lock_space space = lock_space::ranks;
    };
    struct answer {
        std::uint64_t granted = 0;
    };
    struct claim {
        world_rank rank;
        std::uint64_t id = 0;
        auto operator<=>(const claim &) const = default;
    };
    /// A lock that lives here.
    struct home {
        std::deque<claim> waiting;
        claim granted; ///< the last one that a message has told so
    };
    /// What this rank, or in the thread space this thread, holds or is getting.
    struct holding {
        world_rank target;
        lock_space space = lock_space::ranks;
        std::thread::id thread; ///< none in the rank space: locks of the rank, whoever calls
        bool is_mine = false;   ///< false: on its way
    };

    /// Of a target that is direct.
    [[nodiscard]] std::optional<lock_word> word_of(world_rank target, lock_space space) const;
    result<bool> take(verb what, world_rank target, lock_space space);
    result<bool> ask(verb what, world_rank target, lock_space space);
    bool take_soon(const lock_word &word) const;
    std::string describe_wait(world_rank target, lock_space space) const;

    std::vector<holding>::iterator find_held(world_rank target, lock_space space);
    void settle(world_rank target, lock_space space, bool is_mine);

    void on_request(const conduit::message &incoming);
    bool enter(const claim &from, lock_space space);
    void leave(const claim &from, lock_space space);
    void pass_on(lock_space space);

    conduit::engine &engine_;
    conduit::call_service &calls_;
    world_rank self_;
    conduit::handler_id handler_;
    std::mutex homes_mutex_; ///< leaf lock over homes_, and over what only this rank does to words
    std::array<home, 2> homes_;  ///< [space]
    mutable biased_mutex mutex_; ///< leaf lock over held_
    std::vector<holding> held_;
};

} // namespace diomp::sync
