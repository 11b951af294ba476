// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/lock.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::sync {
namespace {

std::size_t index(lock_space space) { return static_cast<std::size_t>(space); }

const char *owner_word(lock_space space) { return space == lock_space::ranks ? "rank" : "thread"; }

/// Rank locks belong to the rank, whichever thread calls.
std::pair<world_rank, std::thread::id> key_of(world_rank target, lock_space space) {
    return {target, space == lock_space::threads ? std::this_thread::get_id() : std::thread::id{}};
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

status locks::begin(world_rank target, lock_space space) {
    std::lock_guard const guard(mutex_);
    auto const [position, is_new] = held_[index(space)].try_emplace(key_of(target, space));
    if (!is_new) {
        return error(OMPX_ERR_LOCK,
                     fmt::format("this {} {} the lock of rank {} already", owner_word(space),
                                 position->second.id == 0 ? "is waiting for" : "holds",
                                 target.value()),
                     space == lock_space::ranks
                         ? "unlock it first; between threads of one rank use ompx_lockt"
                         : "unlock it first");
    }
    return {};
}

void locks::end(world_rank target, lock_space space, std::uint64_t id) {
    std::lock_guard const guard(mutex_);
    auto &table = held_[index(space)];
    auto const found = table.find(key_of(target, space));
    if (id == 0) {
        table.erase(found);
    } else {
        found->second.id = id;
    }
}

result<bool> locks::take(verb what, world_rank target, lock_space space) {
    DIOMP_TRY(begin(target, space));
    auto const call = calls_.start(target, handler_, request{{}, what, space});
    auto told = calls_.finish<answer>(call, [&] {
        return fmt::format("waiting for the {} lock of rank {}", owner_word(space), target.value());
    });
    if (!told) {
        // Whoever gives up must not be granted the lock later.
        engine_.send(target, handler_, request{{call.id}, verb::cancel, space});
        end(target, space, 0);
        return told.take_failure();
    }
    bool const granted = told.value().granted != 0;
    end(target, space, granted ? call.id : 0);
    return granted;
}

status locks::release(world_rank target, lock_space space) {
    std::uint64_t id = 0;
    {
        std::lock_guard const guard(mutex_);
        auto &table = held_[index(space)];
        auto const found = table.find(key_of(target, space));
        if (found == table.end() || found->second.id == 0) {
            return error(OMPX_ERR_LOCK,
                         fmt::format("this {} does not hold the lock of rank {}", owner_word(space),
                                     target.value()),
                         "lock it first, and unlock it once");
        }
        id = found->second.id;
        table.erase(found);
    }
    engine_.send(target, handler_, request{{id}, verb::release, space});
    // On a node, a message is in its queue before anything that this rank does next. Over a network
    // it may come later than what others do after they have met this rank: wait for it.
    if (engine_.transport().direct_base(target) == nullptr) {
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
    std::lock_guard const guard(mutex_);
    queue &waiting = queues_[index(asked.space)];
    switch (asked.what) {
    case verb::try_acquire:
        if (!waiting.empty()) {
            calls_.reply(from.rank, from.id, answer{0});
            return;
        }
        [[fallthrough]];
    case verb::acquire:
        waiting.push_back(from);
        if (waiting.size() == 1) {
            calls_.reply(from.rank, from.id, answer{1});
        }
        return;
    case verb::release:
    case verb::cancel:
        drop(waiting, from);
        return;
    case verb::confirm: // what the same thread sent before has been handled
        calls_.reply(from.rank, from.id, answer{1});
        return;
    }
}

void locks::drop(queue &waiting, const claim &leaving) {
    auto const found = std::find(waiting.begin(), waiting.end(), leaving);
    if (found == waiting.end()) {
        return; // a try that failed and was then cancelled
    }
    bool const held = found == waiting.begin();
    waiting.erase(found);
    if (held && !waiting.empty()) {
        calls_.reply(waiting.front().rank, waiting.front().id, answer{1});
    }
}

int locks::num_held() const {
    std::lock_guard const guard(mutex_);
    return static_cast<int>(held_[0].size() + held_[1].size());
}

} // namespace diomp::sync
