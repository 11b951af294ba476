// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/queue_lock.h"

#include "diomp/types.h"
#include "messaging/engine.h"
#include "rma/atomics.h"
#include "rma/rma.h"

#include <fmt/core.h>

namespace diomp::sync {
namespace {

constexpr std::uint32_t granted = 1u << 31;
constexpr std::uint32_t waiting = 1u << 30;
constexpr std::uint32_t abandoned = 1u << 29;
constexpr std::uint32_t next_mask = abandoned - 1;

world_rank rank_of(std::uint32_t number) { return world_rank{static_cast<int>(number) - 1}; }

} // namespace

template <typename Ready, typename Describe>
status queue_lock::wait(Ready &&ready, Describe &&describe) {
    return how_ == granted_by::store ? engine_.wait(ready, describe)
                                     : engine_.wait_for_message(ready, describe);
}

status queue_lock::update(world_rank at, std::uint32_t *word, std::uint32_t operand,
                          std::int32_t op, std::uint32_t *old) {
    return transfers_.atomics().fetch(at, word, &operand, old, OMPX_UINT32, op);
}

result<std::uint32_t> queue_lock::compare_swap(world_rank at, std::uint32_t *word,
                                               std::uint32_t expected, std::uint32_t desired) {
    std::uint32_t old = 0;
    DIOMP_TRY(transfers_.atomics().compare_swap(at, word, &expected, &desired, &old, OMPX_UINT32));
    return old;
}

result<bool> queue_lock::begin() {
    std::uint32_t expected = 0;
    for (;;) {
        auto found = compare_swap(self_, node_, expected, (expected & ~abandoned) | waiting);
        DIOMP_TRY(found);
        if (found.value() == expected) {
            return expected != 0;
        }
        if ((found.value() & abandoned) == 0) {
            return error(OMPX_ERR_LOCK,
                         fmt::format("this rank {} the lock already",
                                     (found.value() & waiting) != 0 ? "is waiting for" : "holds"),
                         "unlock it first; guard it by a mutex of the program between threads of "
                         "one rank");
        }
        expected = found.value();
    }
}

/// Changes flags of the own node. Waits for the old value, since a network's atomics without a
/// result may still be under way when the call returns.
status queue_lock::toggle(std::uint32_t flags) {
    std::uint32_t old = 0;
    return update(self_, node_, flags, OMPX_BXOR, &old);
}

status queue_lock::acquire() {
    auto is_queued = begin();
    DIOMP_TRY(is_queued);
    if (!is_queued.value()) {
        std::uint32_t previous = 0;
        DIOMP_TRY(update(home_, last_, own_number(), OMPX_REPLACE, &previous));
        if (previous == 0) {
            return toggle(waiting | granted);
        }
        DIOMP_TRY(update(rank_of(previous), node_, own_number(), OMPX_BOR));
    }
    DIOMP_TRY(wait_until_granted());
    return toggle(waiting);
}

status queue_lock::wait_until_granted() {
    auto const ready = [this] { return (own_node() & granted) != 0; };
    auto const describe = [this] {
        return fmt::format("waiting for the lock at {}, whose queue is at rank {}",
                           static_cast<void *>(last_), home_.value());
    };
    status const waited = wait(ready, describe);
    if (!waited) {
        DIOMP_TRY(toggle(waiting | abandoned));
        return error(waited.failure().code(), waited.failure().message(),
                     waited.failure().remedy());
    }
    return {};
}

result<bool> queue_lock::try_acquire() {
    auto is_queued = begin();
    DIOMP_TRY(is_queued);
    if (is_queued.value()) {
        bool const is_granted = (own_node() & granted) != 0;
        DIOMP_TRY(toggle(is_granted ? waiting : waiting | abandoned));
        return is_granted;
    }
    auto previous = compare_swap(home_, last_, 0, own_number());
    DIOMP_TRY(previous);
    bool const is_free = previous.value() == 0;
    DIOMP_TRY(toggle(is_free ? waiting | granted : waiting));
    return is_free;
}

/// The next rank of the queue, plus 1; 0: this rank was the last one, and the lock is free now.
result<std::uint32_t> queue_lock::next_in_queue() {
    if (std::uint32_t const next = own_node() & next_mask; next != 0) {
        return next;
    }
    auto last = compare_swap(home_, last_, own_number(), 0);
    DIOMP_TRY(last);
    if (last.value() == own_number()) {
        return std::uint32_t{0};
    }
    // A rank has entered the queue and is about to write its number.
    auto const ready = [this] { return (own_node() & next_mask) != 0; };
    auto const describe = [this] {
        return fmt::format("waiting for the next rank in the queue of the lock at {}",
                           static_cast<void *>(last_));
    };
    DIOMP_TRY(wait(ready, describe));
    return own_node() & next_mask;
}

status queue_lock::release() {
    if ((own_node() & (granted | waiting | abandoned)) != granted) {
        return error(OMPX_ERR_LOCK, "this rank does not hold the lock",
                     "unlock it once, at the rank that has locked it");
    }
    auto next = next_in_queue();
    DIOMP_TRY(next);
    // First the own node: the next holder may enqueue behind this rank's next request.
    std::uint32_t old = 0;
    DIOMP_TRY(update(self_, node_, 0, OMPX_REPLACE, &old));
    return next.value() == 0 ? status{} : update(rank_of(next.value()), node_, granted, OMPX_BOR);
}

} // namespace diomp::sync
