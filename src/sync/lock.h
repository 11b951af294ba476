// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks over active messages (DiOMP 2024, figure 2). A lock lives at its target rank, which keeps
// the queue: requests are granted in the order in which they arrive, by a message to the rank at
// the head; nobody polls remote memory. Two lock spaces per target: one whose owner is a rank, one
// whose owner is a thread of a rank.
#pragma once

#include "conduit/call.h"

#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace diomp::sync {

enum class lock_space : std::uint32_t { ranks, threads };

/// Any thread. Create before engine.start(). Ranks are valid.
class locks {
public:
    locks(conduit::engine &engine, conduit::call_service &calls, world_rank self);

    /// Blocks until granted. OMPX_ERR_LOCK if the rank (or thread) has it or is about to get it.
    status acquire(world_rank target, lock_space space);
    /// true: taken. Blocks for one exchange of messages only.
    result<bool> try_acquire(world_rank target, lock_space space);
    /// OMPX_ERR_LOCK if the caller does not hold it. Does not block if the target is direct, else
    /// for one exchange of messages.
    status release(world_rank target, lock_space space);

    /// Locks that this rank holds, for the warning at exit.
    [[nodiscard]] int num_held() const;

private:
    enum class verb : std::uint32_t { acquire, try_acquire, release, cancel, confirm };
    struct request {
        conduit::request_header header; ///< release, cancel: id of the acquire
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
    /// Target side: front() holds the lock, the others wait.
    using queue = std::deque<claim>;
    /// Own side: what this rank holds or is getting.
    struct holding {
        std::uint64_t id = 0; ///< 0: on its way
        std::thread::id thread;
    };

    result<bool> take(verb what, world_rank target, lock_space space);
    status begin(world_rank target, lock_space space);
    void end(world_rank target, lock_space space, std::uint64_t id);
    void on_request(const conduit::message &incoming);
    void drop(queue &waiting, const claim &leaving);

    conduit::engine &engine_;
    conduit::call_service &calls_;
    world_rank self_;
    conduit::handler_id handler_;
    mutable std::mutex mutex_;    ///< leaf lock over the two below
    std::array<queue, 2> queues_; ///< [space]: the locks that live here
    /// [space]: target -> holding. In the thread space the key has the thread as well, since
    /// several may be waiting.
    std::array<std::map<std::pair<world_rank, std::thread::id>, holding>, 2> held_;
};

} // namespace diomp::sync
