// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/lock.h"

#include "memory/layout.h"
#include "messaging/call.h"
#include "messaging/engine.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <sched.h>

namespace diomp::sync {
namespace {

/// Polls of a taken word before its requester queues: for a lock that is held only briefly, polling
/// is faster than a request.
constexpr int max_spins = 100;
/// Polls with a yield after each, if waits yield at once because the holder may need this core;
/// limited in number and time.
constexpr int max_yields = 40;
constexpr auto max_yield_time = std::chrono::microseconds(500);

std::size_t index(lock_space space) { return static_cast<std::size_t>(space); }

const char *owner_name(lock_space space) { return space == lock_space::ranks ? "rank" : "thread"; }

/// Identities of threads that have ended are not used again, as those of the system are.
std::uint64_t owner_thread(lock_space space) {
    static std::atomic<std::uint64_t> last{0};
    static thread_local std::uint64_t own = 0;
    if (space == lock_space::ranks) {
        return 0;
    }
    if (own == 0) {
        own = last.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    return own;
}

} // namespace

locks::locks(messaging::engine &engine, messaging::call_service &calls, world_rank self)
    : engine_(engine), calls_(calls), self_(self),
      handler_(engine.add_handler(
          [this](const transport::message &incoming) { on_request(incoming); })) {}

status locks::acquire(world_rank target, lock_space space) {
    auto taken = take(action::acquire, target, space);
    DIOMP_TRY(taken);
    return {};
}

result<bool> locks::try_acquire(world_rank target, lock_space space) {
    return take(action::try_acquire, target, space);
}

std::optional<lock_word> locks::word_of(world_rank target, lock_space space) const {
    std::byte *const slot = engine_.transport().direct_base(target);
    if (slot == nullptr) {
        return std::nullopt;
    }
    auto *const published = reinterpret_cast<memory::published_state *>(slot);
    return lock_word(
        (space == lock_space::ranks ? published->rank_lock : published->thread_lock).word);
}

std::vector<locks::held_lock>::iterator locks::find_held(world_rank target, lock_space space) {
    std::uint64_t const thread = owner_thread(space);
    return std::find_if(held_.begin(), held_.end(), [&](const held_lock &each) {
        return each.target == target && each.space == space && each.thread == thread;
    });
}

void locks::finish_acquire(world_rank target, lock_space space, bool is_acquired) {
    std::lock_guard const guard(mutex_);
    auto const found = find_held(target, space);
    if (is_acquired) {
        found->is_acquired = true;
    } else {
        held_.erase(found);
    }
}

result<bool> locks::take(action what, world_rank target, lock_space space) {
    auto const word = word_of(target, space);
    {
        std::lock_guard const guard(mutex_);
        auto const found = find_held(target, space);
        if (found != held_.end()) {
            return error(OMPX_ERR_LOCK,
                         fmt::format("this {} {} the lock of rank {} already", owner_name(space),
                                     found->is_acquired ? "holds" : "is waiting for",
                                     target.value()),
                         space == lock_space::ranks
                             ? "unlock it first; between threads of one rank use ompx_lockt"
                             : "unlock it first");
        }
        bool const taken = word && word->try_take(self_);
        if (!taken && word && what == action::try_acquire) {
            return false;
        }
        held_.push_back({target, space, owner_thread(space), taken});
        if (taken) {
            return true;
        }
    }
    auto taken =
        word && spin_acquire(*word) ? result<bool>(true) : request_lock(what, target, space);
    finish_acquire(target, space, taken.ok() && taken.value());
    return taken;
}

bool locks::spin_acquire(const lock_word &word) const {
    int const spins = engine_.spins();
    for (int i = 0; i < std::min(spins, max_spins) && !word.has_queue(); ++i) {
        if (word.try_take(self_)) {
            return true;
        }
        cpu_relax();
    }
    if (spins > 0) {
        return false;
    }
    auto const deadline = std::chrono::steady_clock::now() + max_yield_time;
    for (int i = 0; i < max_yields && !word.has_queue(); ++i) {
        if (word.try_take(self_)) {
            return true;
        }
        if (std::chrono::steady_clock::now() > deadline) {
            break;
        }
        ::sched_yield();
    }
    return false;
}

result<bool> locks::request_lock(action what, world_rank target, lock_space space) {
    auto const call = calls_.start(target, handler_, request{{}, what, space});
    auto reply = calls_.finish<lock_reply>(call, [&] { return describe_wait(target, space); });
    if (!reply) {
        // A requester that has timed out must not be granted the lock later.
        engine_.send(target, handler_, request{{call.id}, action::cancel, space});
        return reply.take_failure();
    }
    return reply.value().granted != 0;
}

std::string locks::describe_wait(world_rank target, lock_space space) const {
    std::string text =
        fmt::format("waiting for the {} lock of rank {}", owner_name(space), target.value());
    auto const word = word_of(target, space);
    if (auto const holder = word ? word->holder() : std::nullopt) {
        text += fmt::format(", which rank {} holds", holder->value());
    }
    return text;
}

status locks::release(world_rank target, lock_space space) {
    {
        std::lock_guard const guard(mutex_);
        auto const found = find_held(target, space);
        if (found == held_.end() || !found->is_acquired) {
            return error(OMPX_ERR_LOCK,
                         fmt::format("this {} does not hold the lock of rank {}", owner_name(space),
                                     target.value()),
                         "lock it first, and unlock it once");
        }
        *found = held_.back();
        held_.pop_back();
    }
    auto const word = word_of(target, space);
    if (word && word->try_release(self_)) {
        return {};
    }
    if (target == self_) {
        std::lock_guard const guard(states_mutex_);
        grant_next(space);
        return {};
    }
    engine_.send(target, handler_, request{{}, action::release, space});
    // Within a node, a message is in its queue before anything that this rank does next. Over a
    // network it may arrive after later actions of ranks that have synchronised with this one: wait
    // for a confirmation.
    if (!word) {
        auto reply =
            calls_.call<lock_reply>(target, handler_, request{{}, action::confirm, space}, [&] {
                return fmt::format("waiting for rank {} to take its lock back", target.value());
            });
        DIOMP_TRY(reply);
    }
    return {};
}

void locks::on_request(const transport::message &incoming) {
    request received;
    std::memcpy(&received, incoming.payload.data(), sizeof(received));
    waiter const from{incoming.source, received.header.id};
    std::lock_guard const guard(states_mutex_);
    switch (received.what) {
    case action::acquire:
        if (grant_or_queue(from, received.space)) {
            calls_.reply(from.rank, from.id, lock_reply{1});
        }
        return;
    case action::try_acquire: {
        bool const taken = word_of(self_, received.space)->try_take(from.rank);
        if (taken) {
            lock_states_[index(received.space)].granted = from;
        }
        calls_.reply(from.rank, from.id, lock_reply{taken ? 1U : 0U});
        return;
    }
    case action::release:
        grant_next(received.space);
        return;
    case action::cancel:
        cancel_request(from, received.space);
        return;
    case action::confirm: // earlier messages of the same thread have been handled
        calls_.reply(from.rank, from.id, lock_reply{1});
        return;
    }
}

/// Returns true if granted at once.
bool locks::grant_or_queue(const waiter &from, lock_space space) {
    lock_state &here = lock_states_[index(space)];
    if (word_of(self_, space)->take_or_queue(from.rank)) {
        here.granted = from;
        return true;
    }
    here.waiting.push_back(from);
    return false;
}

/// Cancels a request: it may be queued, may have been granted meanwhile, or was a try_acquire.
void locks::cancel_request(const waiter &from, lock_space space) {
    lock_state &here = lock_states_[index(space)];
    if (here.granted == from) {
        grant_next(space);
        return;
    }
    auto const found = std::find(here.waiting.begin(), here.waiting.end(), from);
    if (found != here.waiting.end()) {
        here.waiting.erase(found);
        if (here.waiting.empty()) {
            word_of(self_, space)->stop_queueing();
        }
    }
}

/// Grants the lock to the next request on behalf of the holder, or frees it.
void locks::grant_next(lock_space space) {
    lock_state &here = lock_states_[index(space)];
    if (here.waiting.empty()) {
        here.granted = {};
        word_of(self_, space)->set_free();
        return;
    }
    here.granted = here.waiting.front();
    here.waiting.pop_front();
    word_of(self_, space)->grant_to(here.granted.rank, !here.waiting.empty());
    calls_.reply(here.granted.rank, here.granted.id, lock_reply{1});
}

int locks::num_held() const {
    std::lock_guard const guard(mutex_);
    return static_cast<int>(std::count_if(held_.begin(), held_.end(),
                                          [](const held_lock &each) { return each.is_acquired; }));
}

} // namespace diomp::sync
