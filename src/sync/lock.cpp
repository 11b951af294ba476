// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/lock.h"

#include "memory/layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <sched.h>

namespace diomp::sync {
namespace {

/// Looks at a word that is taken before its taker queues: a lock that is held for a moment only is
/// quicker to wait for than to ask for.
constexpr int max_looks = 100;
/// The same with a yield after each where waits yield at once, since the holder may need this core;
/// not for longer than this.
constexpr int max_yields = 40;
constexpr auto yields_last = std::chrono::microseconds(500);

std::size_t index(lock_space space) { return static_cast<std::size_t>(space); }

const char *owner_word(lock_space space) { return space == lock_space::ranks ? "rank" : "thread"; }

std::thread::id owner_thread(lock_space space) {
    return space == lock_space::threads ? std::this_thread::get_id() : std::thread::id{};
}

} // namespace

locks::locks(conduit::engine &engine, conduit::call_service &calls, world_rank self)
    : engine_(engine), calls_(calls), self_(self),
      handler_(
          engine.add_handler([this](const conduit::message &incoming) { on_request(incoming); })) {}

status locks::acquire(world_rank target, lock_space space) {
    auto taken = take(verb::acquire, target, space);
    DIOMP_TRY(taken);
    return {};
}

result<bool> locks::try_acquire(world_rank target, lock_space space) {
    return take(verb::try_acquire, target, space);
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

std::vector<locks::holding>::iterator locks::find_held(world_rank target, lock_space space) {
    std::thread::id const thread = owner_thread(space);
    return std::find_if(held_.begin(), held_.end(), [&](const holding &each) {
        return each.target == target && each.space == space && each.thread == thread;
    });
}

void locks::settle(world_rank target, lock_space space, bool is_mine) {
    std::lock_guard const guard(mutex_);
    auto const found = find_held(target, space);
    if (is_mine) {
        found->is_mine = true;
    } else {
        held_.erase(found);
    }
}

result<bool> locks::take(verb what, world_rank target, lock_space space) {
    auto const word = word_of(target, space);
    {
        std::lock_guard const guard(mutex_);
        auto const found = find_held(target, space);
        if (found != held_.end()) {
            return error(OMPX_ERR_LOCK,
                         fmt::format("this {} {} the lock of rank {} already", owner_word(space),
                                     found->is_mine ? "holds" : "is waiting for", target.value()),
                         space == lock_space::ranks
                             ? "unlock it first; between threads of one rank use ompx_lockt"
                             : "unlock it first");
        }
        bool const taken = word && word->try_take(self_);
        if (!taken && word && what == verb::try_acquire) {
            return false;
        }
        held_.push_back({target, space, owner_thread(space), taken});
        if (taken) {
            return true;
        }
    }
    auto taken = word && take_soon(*word) ? result<bool>(true) : ask(what, target, space);
    settle(target, space, taken.ok() && taken.value());
    return taken;
}

bool locks::take_soon(const lock_word &word) const {
    int const spins = engine_.spins();
    for (int i = 0; i < std::min(spins, max_looks) && !word.has_queue(); ++i) {
        if (word.try_take(self_)) {
            return true;
        }
        cpu_relax();
    }
    if (spins > 0) {
        return false;
    }
    auto const deadline = std::chrono::steady_clock::now() + yields_last;
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

result<bool> locks::ask(verb what, world_rank target, lock_space space) {
    auto const call = calls_.start(target, handler_, request{{}, what, space});
    auto told = calls_.finish<answer>(call, [&] { return describe_wait(target, space); });
    if (!told) {
        // Whoever gives up must not be granted the lock later.
        engine_.send(target, handler_, request{{call.id}, verb::cancel, space});
        return told.take_failure();
    }
    return told.value().granted != 0;
}

std::string locks::describe_wait(world_rank target, lock_space space) const {
    std::string text =
        fmt::format("waiting for the {} lock of rank {}", owner_word(space), target.value());
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
        if (found == held_.end() || !found->is_mine) {
            return error(OMPX_ERR_LOCK,
                         fmt::format("this {} does not hold the lock of rank {}", owner_word(space),
                                     target.value()),
                         "lock it first, and unlock it once");
        }
        *found = held_.back();
        held_.pop_back();
    }
    auto const word = word_of(target, space);
    if (word && word->try_give_back(self_)) {
        return {};
    }
    if (target == self_) {
        std::lock_guard const guard(homes_mutex_);
        pass_on(space);
        return {};
    }
    engine_.send(target, handler_, request{{}, verb::release, space});
    // On a node, a message is in its queue before anything that this rank does next. Over a network
    // it may come later than what others do after they have met this rank: wait for it.
    if (!word) {
        auto told = calls_.call<answer>(target, handler_, request{{}, verb::confirm, space}, [&] {
            return fmt::format("waiting for rank {} to take its lock back", target.value());
        });
        DIOMP_TRY(told);
    }
    return {};
}

void locks::on_request(const conduit::message &incoming) {
    request asked;
    std::memcpy(&asked, incoming.payload.data(), sizeof(asked));
    claim const from{incoming.source, asked.header.id};
    std::lock_guard const guard(homes_mutex_);
    switch (asked.what) {
    case verb::acquire:
        if (enter(from, asked.space)) {
            calls_.reply(from.rank, from.id, answer{1});
        }
        return;
    case verb::try_acquire: {
        bool const taken = word_of(self_, asked.space)->try_take(from.rank);
        if (taken) {
            homes_[index(asked.space)].granted = from;
        }
        calls_.reply(from.rank, from.id, answer{taken ? 1U : 0U});
        return;
    }
    case verb::release:
        pass_on(asked.space);
        return;
    case verb::cancel:
        leave(from, asked.space);
        return;
    case verb::confirm: // what the same thread sent before has been handled
        calls_.reply(from.rank, from.id, answer{1});
        return;
    }
}

/// true: granted at once.
bool locks::enter(const claim &from, lock_space space) {
    home &here = homes_[index(space)];
    if (word_of(self_, space)->take_or_queue(from.rank)) {
        here.granted = from;
        return true;
    }
    here.waiting.push_back(from);
    return false;
}

/// Of one who has given up: it may wait, have been granted the lock meanwhile, or have tried only.
void locks::leave(const claim &from, lock_space space) {
    home &here = homes_[index(space)];
    if (here.granted == from) {
        pass_on(space);
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

/// In place of the holder.
void locks::pass_on(lock_space space) {
    home &here = homes_[index(space)];
    if (here.waiting.empty()) {
        here.granted = {};
        word_of(self_, space)->make_free();
        return;
    }
    here.granted = here.waiting.front();
    here.waiting.pop_front();
    word_of(self_, space)->hand_to(here.granted.rank, !here.waiting.empty());
    calls_.reply(here.granted.rank, here.granted.id, answer{1});
}

int locks::num_held() const {
    std::lock_guard const guard(mutex_);
    return static_cast<int>(std::count_if(held_.begin(), held_.end(),
                                          [](const holding &each) { return each.is_mine; }));
}

} // namespace diomp::sync
